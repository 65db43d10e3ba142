import numpy as np
from scipy import sparse


class Products:
    def __init__(self, X, bias=0.0):
        self.X = sparse.csr_array(X) if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        self.bias=float(bias)
        self.n_samples=X.shape[0]; self.n_features=X.shape[1]+(self.bias!=0)
    def scores(self,W,out,n_threads=1):
        d=self.X.shape[1]
        out[...]=self.X@W[:d]
        if self.bias: out+=self.bias*W[d]
    def gradient(self,B,out,n_threads=1):
        d=self.X.shape[1]
        out[:d]=self.X.T@B
        if self.bias: out[d]=self.bias*B.sum(axis=0)
