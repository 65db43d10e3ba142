// dlib's structural SVM (one-slack cutting planes) on a saved problem of chains.
//
// usage: dlib_ocr problem.bin lambda eps cache_size
//
// problem.bin is int64 n, F, K, offsets[n + 1], y[rows] and double x[rows * F]. Prints
// a JSON line at the end; dlib's risk gap is the duality gap of the normalized objective
// lambda/2 |w|^2 + mean hinge, with C = 1 / lambda.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include <dlib/matrix.h>
#include <dlib/optimization.h>
#include <dlib/svm.h>

using Vector = dlib::matrix<double, 0, 1>;
using Sparse = std::vector<std::pair<unsigned long, double>>;
using Integers = std::vector<long long>;

struct Chains {
    long long n, F, K;
    Integers offsets, y;
    std::vector<double> x;

    explicit Chains(const char* path) {
        std::ifstream file(path, std::ios::binary);
        const auto read = [&](void* to, std::size_t bytes) {
            file.read(static_cast<char*>(to), bytes);
        };
        read(&n, 8), read(&F, 8), read(&K, 8);
        offsets.resize(n + 1), read(offsets.data(), 8 * (n + 1));
        y.resize(offsets[n]), read(y.data(), 8 * offsets[n]);
        x.resize(offsets[n] * F), read(x.data(), 8 * offsets[n] * F);
        if (!file) std::exit(2);
    }
};

// Weights: emission F x K, bias, first and last K each, transition K x K.
class Problem : public dlib::structural_svm_problem<Vector, Sparse> {
public:
    explicit Problem(const Chains& chains) : data(chains) {}

    mutable long long oracle_calls = 0;

private:
    const Chains& data;

    long get_num_dimensions() const override {
        return (data.F + 3) * data.K + data.K * data.K;
    }
    long get_num_samples() const override { return data.n; }

    void get_truth_joint_feature_vector(long i, Sparse& psi) const override {
        joint_feature(i, data.y.data() + data.offsets[i], psi);
    }

    void joint_feature(long i, const long long* labels, Sparse& psi) const {
        const long long K = data.K, F = data.F, start = data.offsets[i];
        const long long T = data.offsets[i + 1] - start;
        psi.clear();
        for (long long t = 0; t < T; ++t) {
            for (long long f = 0; f < F; ++f) {
                const double value = data.x[(start + t) * F + f];
                if (value != 0.0) psi.emplace_back(f * K + labels[t], value);
            }
            psi.emplace_back(F * K + labels[t], 1.0);
            if (t > 0)
                psi.emplace_back((F + 3 + labels[t - 1]) * K + labels[t], 1.0);
        }
        psi.emplace_back((F + 1) * K + labels[0], 1.0);
        psi.emplace_back((F + 2) * K + labels[T - 1], 1.0);
    }

    void separation_oracle(const long i, const Vector& w, double& loss,
                           Sparse& psi) const override {
        const long long K = data.K, F = data.F, start = data.offsets[i];
        const long long T = data.offsets[i + 1] - start;
        const double* weights = &w(0);
        const double* transition = weights + (F + 3) * K;
        std::vector<double> table(T * K);
        Integers from(T * K), labels(T);
        ++oracle_calls;
        for (long long t = 0; t < T; ++t) {
            double* row = table.data() + t * K;
            const auto add = [&](const double* values, double coef) {
                for (long long k = 0; k < K; ++k) row[k] += coef * values[k];
            };
            for (long long k = 0; k < K; ++k)
                row[k] = (k != data.y[start + t]) / static_cast<double>(T);
            for (long long f = 0; f < F; ++f) {
                const double value = data.x[(start + t) * F + f];
                if (value != 0.0) add(weights + f * K, value);
            }
            add(weights + F * K, 1.0);
            if (t == 0) add(weights + (F + 1) * K, 1.0);
            if (t == T - 1) add(weights + (F + 2) * K, 1.0);
            if (t == 0) continue;
            for (long long k = 0; k < K; ++k) {
                long long best = 0;
                for (long long p = 1; p < K; ++p)
                    if (row[p - K] + transition[p * K + k]
                        > row[best - K] + transition[best * K + k])
                        best = p;
                from[t * K + k] = best;
            }
            for (long long k = 0; k < K; ++k) {
                const long long p = from[t * K + k];
                row[k] += row[p - K] + transition[p * K + k];
            }
        }
        const double* row = table.data() + (T - 1) * K;
        labels[T - 1] = std::max_element(row, row + K) - row;
        for (long long t = T - 1; t > 0; --t) labels[t - 1] = from[t * K + labels[t]];
        loss = 0.0;
        for (long long t = 0; t < T; ++t)
            loss += (labels[t] != data.y[start + t]) / static_cast<double>(T);
        joint_feature(i, labels.data(), psi);
    }
};

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    const Chains chains(argv[1]);
    Problem problem(chains);
    problem.set_c(1.0 / std::atof(argv[2]));
    problem.set_epsilon(std::atof(argv[3]));
    problem.set_max_cache_size(std::atoi(argv[4]));
    problem.set_max_iterations(1000000);
    dlib::oca solver;
    Vector w;
    const auto start = std::chrono::steady_clock::now();
    const double objective = solver(problem, w);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::printf("{\"seconds\": %.6f, \"n_iter\": %.2f, \"objective\": %.12g}\n",
                time.count(), problem.oracle_calls / double(chains.n),
                objective * std::atof(argv[2]));
}
