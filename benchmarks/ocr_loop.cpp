// Block-coordinate Frank-Wolfe on chains, by hand: the yardstick of bench_ocr_pass.py.
//
// The algorithm of the paper in the marginal space of a chain, with everything fixed
// at compile time that the library leaves to its user: LABELS, FEATURES, plain steps,
// dense features, Hamming loss over the length, uniform weights. The norm of the
// direction comes from the words' Gram matrices, which makes the update of w one BLAS
// call that forms no direction in the space of w.
//
// w is [emission F x K][bias K][first K][last K][transition K x K].

#include <algorithm>
#include <cstddef>

namespace {

constexpr int K = LABELS, F = FEATURES, T_MAX = 64;

// The Fortran interface, handed over by Python (scipy.linalg.cython_blas).
using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*,
                      const double*, const double*, const int*, const double*,
                      const int*, const double*, double*, const int*);

double theta[T_MAX * K], table[T_MAX * K], delta[T_MAX * K], edge_delta[K * K];
int labels[T_MAX];

// theta = x W, row-major; without BLAS by rows of W.
void multiply(Gemm gemm, int T, const double* x, const double* w) {
    const double one = 1.0, zero = 0.0;
    if (gemm) {
        gemm("N", "N", &K, &T, &F, &one, w, &K, x, &F, &zero, theta, &K);
        return;
    }
    for (int t = 0; t < T; ++t) {
        double sum[K] = {};
        for (int f = 0; f < F; ++f)
            for (int k = 0; k < K; ++k) sum[k] += x[t * F + f] * w[f * K + k];
        std::copy(sum, sum + K, theta + t * K);
    }
}

// W += coef x' delta.
void update(Gemm gemm, int T, double coef, const double* x, double* w) {
    const double one = 1.0;
    if (gemm) {
        gemm("N", "T", &K, &F, &T, &coef, delta, &K, x, &F, &one, w, &K);
        return;
    }
    for (int f = 0; f < F; ++f) {
        double sum[K] = {};
        for (int t = 0; t < T; ++t)
            for (int k = 0; k < K; ++k) sum[k] += x[t * F + f] * delta[t * K + k];
        for (int k = 0; k < K; ++k) w[f * K + k] += coef * sum[k];
    }
}

// Loss-augmented decoding into `labels`; ties go to the first label.
void viterbi(int T, const int* y, const double* transition) {
    for (int t = 0; t < T; ++t)
        for (int k = 0; k < K; ++k)
            table[t * K + k] = theta[t * K + k] + (k == y[t] ? 0.0 : 1.0 / T);
    for (int t = 1; t < T; ++t) {
        double best[K];
        const double* previous = table + (t - 1) * K;
        for (int k = 0; k < K; ++k) best[k] = previous[0] + transition[k];
        for (int p = 1; p < K; ++p)
            for (int k = 0; k < K; ++k)
                best[k] = std::max(best[k], previous[p] + transition[p * K + k]);
        for (int k = 0; k < K; ++k) table[t * K + k] += best[k];
    }
    labels[T - 1] = std::max_element(table + (T - 1) * K, table + T * K)
                    - (table + (T - 1) * K);
    for (int t = T - 2; t >= 0; --t) {
        double score[K];
        for (int k = 0; k < K; ++k)
            score[k] = table[t * K + k] + transition[k * K + labels[t + 1]];
        labels[t] = std::max_element(score, score + K) - score;
    }
}

double dot(int n, const double* a, const double* b) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

void add(int n, double coef, const double* x, double* y) {
    for (int i = 0; i < n; ++i) y[i] += coef * x[i];
}

}  // namespace

// `count` steps, on the words order[0], order[1], ... The state is the caller's:
// w, and of each word its mean marginals less those of the truth (nodes: rows x K,
// edges: words x K x K) and its mean loss. grams[start of word i's] is x x' + 1, plus
// 1 at the first and at the last corner, of shape T x T.
extern "C" void bcfw_steps(const double* x, const int* y, const std::ptrdiff_t* offsets,
                           const double* grams, const std::ptrdiff_t* gram_offsets,
                           std::ptrdiff_t n, double lam, const std::ptrdiff_t* order,
                           std::ptrdiff_t count, Gemm gemm, double* w, double* nodes,
                           double* edges, double* mean_loss) {
    double *bias = w + F * K, *first = bias + K, *last = first + K;
    double* transition = last + K;
    for (std::ptrdiff_t step = 0; step < count; ++step) {
        const std::ptrdiff_t i = order[step], start = offsets[i];
        const int T = offsets[i + 1] - start;
        const double *xi = x + start * F, *gram = grams + gram_offsets[i];
        const int* yi = y + start;
        double *nu = nodes + start * K, *edge = edges + i * K * K;

        multiply(gemm, T, xi, w);
        for (int t = 0; t < T; ++t) add(K, 1.0, bias, theta + t * K);
        add(K, 1.0, first, theta);
        add(K, 1.0, last, theta + (T - 1) * K);
        viterbi(T, yi, transition);

        // The block's gap, and the direction: the new corner less the block.
        double gap = -mean_loss[i] - dot(T * K, theta, nu) - dot(K * K, transition, edge);
        double loss = 0.0;
        for (int k = 0; k < T * K; ++k) delta[k] = -nu[k];
        for (int k = 0; k < K * K; ++k) edge_delta[k] = -edge[k];
        for (int t = 0; t < T; ++t) {
            gap += theta[t * K + labels[t]] - theta[t * K + yi[t]];
            loss += (labels[t] != yi[t]) / static_cast<double>(T);
            delta[t * K + labels[t]] += 1.0;
            delta[t * K + yi[t]] -= 1.0;
            if (t == 0) continue;
            const int to = labels[t - 1] * K + labels[t], from = yi[t - 1] * K + yi[t];
            gap += transition[to] - transition[from];
            edge_delta[to] += 1.0;
            edge_delta[from] -= 1.0;
        }
        gap = (gap + loss) / n;

        double norm = dot(K * K, edge_delta, edge_delta);
        for (int t = 0; t < T; ++t) {
            norm += gram[t * T + t] * dot(K, delta + t * K, delta + t * K);
            for (int u = 0; u < t; ++u)
                norm += 2.0 * gram[t * T + u] * dot(K, delta + t * K, delta + u * K);
        }
        const double curvature = norm / (lam * n * n);
        if (!(gap > 0.0)) continue;
        const double gamma = gap < curvature ? gap / curvature : 1.0;

        add(T * K, gamma, delta, nu);
        add(K * K, gamma, edge_delta, edge);
        mean_loss[i] += gamma * (loss - mean_loss[i]);
        const double coef = -gamma / (lam * n);
        update(gemm, T, coef, xi, w);
        for (int t = 0; t < T; ++t) add(K, coef, delta + t * K, bias);
        add(K, coef, delta, first);
        add(K, coef, delta + (T - 1) * K, last);
        add(K * K, coef, edge_delta, transition);
    }
}
