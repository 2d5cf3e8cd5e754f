"""Products of vectors and matrices, one sum after the other."""


def dot(a, b):
    """`a @ b` of vectors."""
    total = a.dtype.type(0) * b.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


def matrix_vector(a, b, out):
    """`out[:] = a @ b` of a matrix and a vector."""
    for i in range(a.shape[0]):
        out[i] = dot(a[i], b)


def vector_matrix(a, b, out):
    """`out[:] = a @ b` of a vector and a matrix."""
    for j in range(b.shape[1]):
        out[j] = dot(a, b[:, j])


def matrix_matrix(a, b, out):
    """`out[:] = a @ b` of matrices."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = dot(a[i], b[:, j])
