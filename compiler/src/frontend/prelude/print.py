"""Formatting for `print` that C's `printf` lacks: strings as bytes, terminated by a zero."""

import math

import numpy as np


def put_letter(to, at, code):
    """Store a character in UTF-8; returns the next position. An invalid code point becomes U+FFFD."""
    if code < 0 or code >= 0x110000 or (code >= 0xD800 and code < 0xE000):
        code = 0xFFFD
    if code < 128:
        to[at] = code
        return at + 1
    if code < 2048:
        to[at] = 192 + (code >> 6)
    elif code < 65536:
        to[at] = 224 + (code >> 12)
        at += 1
        to[at] = 128 + (code >> 6 & 63)
    else:
        to[at] = 240 + (code >> 18)
        at += 1
        to[at] = 128 + (code >> 12 & 63)
        at += 1
        to[at] = 128 + (code >> 6 & 63)
    to[at + 1] = 128 + (code & 63)
    return at + 2


def print_text(to, letters, fill, align, width, most):
    """A string in a field: left (1), right (2) or centered (3)."""
    count = min(text_len(letters), most)
    pad = max(width - count, 0)
    before = 0 if align == 1 else (pad if align == 2 else pad // 2)
    at = 0
    for _ in range(before):
        to[at] = fill
        at += 1
    for k in range(count):
        at = put_letter(to, at, int(letters[k]))
    for _ in range(pad - before):
        to[at] = fill
        at += 1
    to[at] = 0


def print_letter(to, code):
    """All bytes of a character except the last one, which may end a string."""
    to[put_letter(to, 0, code) - 1] = 0


def last_of_letter(code):
    """The last byte of a character."""
    if code < 0 or code >= 0x110000 or (code >= 0xD800 and code < 0xE000):
        code = 0xFFFD
    return code if code < 128 else 128 + (code & 63)


def print_zeros(to, x, width, sign):
    """The prefix of a float in a zero-padded field.

    This is `sign` unless the float is negative; for an infinity or NaN, all but its letters, as C's `printf` pads with
    spaces.
    """
    at = 0
    if x < 0 and not math.isfinite(x):
        to[0] = 45
        at = 1
    elif sign != 0 and not (math.isfinite(x) and math.copysign(1.0, x) < 0):
        to[0] = sign
        at = 1
    if not math.isfinite(x):
        for _ in range(width - at - 3):
            to[at] = 48
            at += 1
    to[at] = 0


def print_width(x, width, sign):
    """The width of the field after the prefix."""
    if not math.isfinite(x):
        return 0
    return width - 1 if sign != 0 and math.copysign(1.0, x) > 0 else width


def print_rest(x):
    """The float after the prefix, which includes the sign of an infinity."""
    return math.inf if x < 0 and not math.isfinite(x) else x


def print_bytes(to, letters):
    """The characters between the quotes of a bytes literal."""
    at = 0
    for k in range(text_len(letters)):
        code = int(letters[k])
        short = 0
        if code == 9:
            short = 116
        elif code == 10:
            short = 110
        elif code == 13:
            short = 114
        elif code == 39 or code == 92:
            short = code
        if short > 0:
            to[at] = 92
            to[at + 1] = short
            at += 2
        elif 32 <= code < 127:
            to[at] = code
            at += 1
        else:
            to[at] = 92
            to[at + 1] = 120
            for half in range(2):
                digit = code >> 4 if half == 0 else code & 15
                to[at + 2 + half] = digit + 48 if digit < 10 else digit + 87
            at += 4
    to[at] = 0


def print_int(to, value, base, sign, prefix, ten, group, fill, align, width):
    """An integer in a field: left (1), right (2), centered (3), or with the fill after its sign (4).

    `sign` is the character before a number that is not negative, `prefix` the character after the `0` of a prefix,
    `group` the separator of groups of digits, each 0 for none; `ten` is the character of the digit for ten.
    """
    rest = np.uint64(value)
    if value < 0:
        sign = 45
        rest = ~rest + np.uint64(1)
    left = rest
    by = np.uint64(base)
    count = 1
    while left >= by:
        left //= by
        count += 1
    every = 3 if base == 10 else 4
    body = count + ((count - 1) // every if group != 0 else 0)
    pad = max(width - body - (1 if sign != 0 else 0) - (2 if prefix != 0 else 0), 0)
    before = pad if align == 2 else (pad // 2 if align == 3 else 0)
    between = pad if align == 4 else 0
    at = 0
    for _ in range(before):
        to[at] = fill
        at += 1
    if sign != 0:
        to[at] = sign
        at += 1
    if prefix != 0:
        to[at] = 48
        to[at + 1] = prefix
        at += 2
    for _ in range(between):
        to[at] = fill
        at += 1
    place = at + body
    for k in range(count):
        if group != 0 and k > 0 and k % every == 0:
            place -= 1
            to[place] = group
        digit = int(rest % by)
        rest //= by
        place -= 1
        to[place] = digit + 48 if digit < 10 else digit - 10 + ten
    at += body
    for _ in range(pad - before - between):
        to[at] = fill
        at += 1
    to[at] = 0
