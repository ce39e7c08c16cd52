/* round(x, n): the exact decimal expansion, rounded half to even, read back as the nearest double.
 *
 * Nearly always the scaled number fits 128 bits, and both it and the power of ten are doubles, so one
 * division rounds as it should. Else the digits are written out: a double has at most 309 before the
 * point, and those behind it come one by one. */

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "specstream_arithmetic.h"

__extension__ typedef unsigned __int128 uint128_t;

enum {
    MOST_PLACES = 323,   /* CPython: with more, x itself */
    LEAST_PLACES = -308, /* with fewer, a zero */
    LIMBS = 40,          /* of 32 bits: 1074 behind the point, or 1024 before it; and room for *10 */
    DIGITS = 310 + MOST_PLACES + 2
};

/* A number below 2**(32 * LIMBS), the lowest limb first. */
struct limbs {
    uint32_t limb[LIMBS];
};

static void shift_in(struct limbs *limbs, uint64_t value, int shift)
{
    uint128_t low = (uint128_t)value << (shift % 32);

    memset(limbs, 0, sizeof *limbs);
    for (int at = shift / 32; low != 0; at++, low >>= 32)
        limbs->limb[at] = (uint32_t)low;
}

/* Divides by ten; the digit that remains. */
static int divide_by_ten(struct limbs *limbs)
{
    uint64_t rest = 0;

    for (int at = LIMBS - 1; at >= 0; at--) {
        rest = rest << 32 | limbs->limb[at];
        limbs->limb[at] = (uint32_t)(rest / 10);
        rest %= 10;
    }
    return (int)rest;
}

static void multiply_by_ten(struct limbs *limbs)
{
    uint64_t carry = 0;

    for (int at = 0; at < LIMBS; at++) {
        carry += (uint64_t)limbs->limb[at] * 10;
        limbs->limb[at] = (uint32_t)carry;
        carry >>= 32;
    }
}

static bool is_zero(const struct limbs *limbs)
{
    for (int at = 0; at < LIMBS; at++)
        if (limbs->limb[at] != 0)
            return false;
    return true;
}

/* Takes out what lies from a bit on: a digit. */
static int digit_above(struct limbs *limbs, int bit)
{
    const int at = bit / 32, shift = bit % 32;
    const uint64_t both = limbs->limb[at] | (uint64_t)limbs->limb[at + 1] << 32;
    const int digit = (int)(both >> shift & 15);
    const uint64_t rest = both & ((UINT64_C(1) << shift) - 1);

    limbs->limb[at] = (uint32_t)rest;
    limbs->limb[at + 1] = (uint32_t)(rest >> 32);
    return digit;
}

/* Rounds digits[0 .. kept) by those that follow it; digits[0] is 0, for a carry. */
static void round_digits(char *digits, int kept, int count, bool more)
{
    bool up = false;

    if (kept < count) {
        bool beyond = more;
        for (int at = kept + 1; at < count; at++)
            beyond |= digits[at] != '0';
        const bool odd = (digits[kept - 1] - '0') % 2 != 0;
        up = digits[kept] > '5' || (digits[kept] == '5' && (beyond || odd));
    }
    for (int at = kept - 1; up; at--) {
        up = digits[at] == '9';
        digits[at] = up ? '0' : (char)(digits[at] + 1);
    }
}

/* By the digits; x is finite and not negative. */
static double round_written_out(double x, int places)
{
    /* A zero for the carry, the digits before the point, those behind it, the exponent. */
    char text[1 + DIGITS + 16], reversed[320];
    struct limbs limbs;
    int exponent, before = 0, count = 1;
    const uint64_t mantissa = (uint64_t)ldexp(frexp(x, &exponent), 53);
    const int shift = exponent - 53;
    const uint64_t low = shift >= 0 ? 0 : shift <= -64 ? mantissa : mantissa & ((UINT64_C(1) << -shift) - 1);

    shift_in(&limbs, shift >= 0 ? mantissa : shift <= -64 ? 0 : mantissa >> -shift,
             shift > 0 ? shift : 0);
    while (!is_zero(&limbs))
        reversed[before++] = (char)('0' + divide_by_ten(&limbs));
    text[0] = '0';
    while (before > 0)
        text[count++] = reversed[--before];
    /* So many digits are kept; where there are fewer before the point, the number is below half. */
    int kept = count + places;
    if (kept < 1)
        return 0.0;
    bool more = low != 0;
    if (places >= 0 && low != 0) {
        shift_in(&limbs, low, 0);
        for (int at = 0; at <= places; at++) {
            multiply_by_ten(&limbs);
            text[count++] = (char)('0' + digit_above(&limbs, -shift));
        }
        more = !is_zero(&limbs);
    }
    if (kept > count) { /* a whole number */
        kept = count;
        places = 0;
    }
    round_digits(text, kept, count, more);
    snprintf(text + kept, 16, "e%d", -places);
    return strtod(text, NULL);
}

/* 10**0 to 10**22 are doubles. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { EXACT_POWERS = sizeof powers / sizeof *powers };

/* Of x below 2**53 / 10**places: no digit of the result is lost in a double. */
static double round_scaled(double x, int places)
{
    int exponent;
    const uint64_t mantissa = (uint64_t)ldexp(frexp(x, &exponent), 53);
    const int shift = 53 - exponent; /* x is mantissa / 2**shift */
    uint128_t power = 1;

    for (int i = 0; i < places; i++)
        power *= 10;
    const uint128_t scaled = mantissa * power;
    if (shift >= 128)
        return 0.0; /* far below half */
    const uint128_t rest = scaled & (((uint128_t)1 << shift) - 1), half = (uint128_t)1 << (shift - 1);
    uint64_t whole = (uint64_t)(scaled >> shift);
    if (rest > half || (rest == half && whole % 2 != 0))
        whole++;
    return (double)whole / powers[places];
}

int32_t ss_float_round(double x, int64_t places, double *result)
{
    const double size = fabs(x);
    double rounded;

    if (!isfinite(x) || x == 0.0 || places > MOST_PLACES)
        rounded = size;
    else if (places < LEAST_PLACES)
        rounded = 0.0;
    else if (places >= 0 && size >= 0x1p52)
        rounded = size;
    else if (places >= 0 && places < EXACT_POWERS && size < 0x1p53 / powers[places])
        rounded = round_scaled(size, (int)places);
    else
        rounded = round_written_out(size, (int)places);
    if (isinf(rounded) && isfinite(x))
        return SS_OVERFLOW_ERROR;
    *result = isnan(x) ? x : copysign(rounded, x);
    return 0;
}

/* A magnitude to a multiple of 10**places, half to even. */
int32_t ss_int_round(uint64_t x, int64_t places, uint64_t limit, uint64_t *result)
{
    uint128_t unit = 1;

    if (places > 20) {
        *result = 0;
        return 0;
    }
    for (int64_t i = 0; i < places; i++)
        unit *= 10;
    const uint128_t rest = x % unit, half = unit / 2;
    uint128_t rounded = x / unit;
    if (places > 0 && (rest > half || (rest == half && rounded % 2 != 0)))
        rounded++;
    rounded *= unit;
    if (rounded > limit)
        return SS_OVERFLOW_ERROR;
    *result = (uint64_t)rounded;
    return 0;
}

/* -- powers modulo an integer -- */

static uint64_t power_modulo(uint64_t base, uint64_t exponent, uint64_t modulus)
{
    uint64_t power = 1 % modulus;

    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            power = (uint64_t)((uint128_t)power * base % modulus);
        base = (uint64_t)((uint128_t)base * base % modulus);
    }
    return power;
}

/* The inverse by Euclid's algorithm; false: there is none. */
static bool invert_modulo(uint64_t *base, uint64_t modulus)
{
    __extension__ __int128 old = 0, now = 1;
    uint64_t high = modulus, low = *base % modulus;

    while (low != 0) {
        const uint64_t quotient = high / low, rest = high % low;
        __extension__ const __int128 next = old - now * quotient;
        high = low;
        low = rest;
        old = now;
        now = next;
    }
    if (high != 1)
        return false;
    *base = (uint64_t)(old < 0 ? old + modulus : old);
    return true;
}

int32_t ss_int_power_modulo(uint64_t base, uint64_t exponent, uint64_t modulus, int32_t negative,
                            uint64_t *result)
{
    if (modulus == 0)
        return SS_VALUE_ERROR;
    base %= modulus;
    if (negative && !invert_modulo(&base, modulus))
        return SS_VALUE_ERROR;
    *result = power_modulo(base, exponent, modulus);
    return 0;
}
