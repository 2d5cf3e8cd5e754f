"""Strings as arrays of their characters: the zeros after the last character are not part of the string."""


def text_len(a):
    """The number of characters."""
    n = len(a)
    while n > 0 and a[n - 1] == 0:
        n -= 1
    return n


def text_order(a, b):
    """Negative, zero or positive if `a` is less than, equal to or greater than `b`."""
    for k in range(max(len(a), len(b))):
        x = int(a[k]) if k < len(a) else 0
        y = int(b[k]) if k < len(b) else 0
        if x != y:
            return -1 if x < y else 1
    return 0


def text_has(a, b):
    """Whether `b` is a substring of `a`."""
    n, m = text_len(a), text_len(b)
    for start in range(n - m + 1):
        same = True
        for k in range(m):
            if a[start + k] != b[k]:
                same = False
                break
        if same:
            return True
    return False


def text_holds(a, value):
    """Whether a string is the character with this code."""
    for k in range(text_len(a)):
        if a[k] == value:
            return True
    return False


def text_put(to, source):
    """Store a string, padded with zeros."""
    for k in range(len(to)):
        to[k] = source[k] if k < len(source) else 0
