/* Python's arithmetic, bit for bit, for what compiled operators cannot compute inline. */

#include <limits.h>
#include <math.h>

#include "specstream_arithmetic.h"

static const double pi = 0x1.921fb54442d18p+1;

double ss_math_exp(double x) { return exp(x); }
double ss_math_exp2(double x) { return exp2(x); }
double ss_math_expm1(double x) { return expm1(x); }
double ss_math_log(double x) { return log(x); }
double ss_math_log2(double x) { return log2(x); }
double ss_math_log10(double x) { return log10(x); }
double ss_math_log1p(double x) { return x == 0.0 ? x : log1p(x); }
double ss_math_sin(double x) { return sin(x); }
double ss_math_cos(double x) { return cos(x); }
double ss_math_tan(double x) { return tan(x); }
double ss_math_asin(double x) { return asin(x); }
double ss_math_acos(double x) { return acos(x); }
double ss_math_atan(double x) { return atan(x); }
double ss_math_sinh(double x) { return sinh(x); }
double ss_math_cosh(double x) { return cosh(x); }
double ss_math_tanh(double x) { return tanh(x); }
double ss_math_asinh(double x) { return asinh(x); }
double ss_math_acosh(double x) { return acosh(x); }
double ss_math_atanh(double x) { return atanh(x); }
double ss_math_erf(double x) { return erf(x); }
double ss_math_erfc(double x) { return erfc(x); }
double ss_math_cbrt(double x) { return cbrt(x); }

/* Python settles the axes and infinities itself: a libm may round 3*pi/4 differently there. */
double ss_math_atan2(double y, double x)
{
    if (isnan(x) || isnan(y))
        return NAN;
    const int leftwards = signbit(x) != 0;
    if (isinf(y)) {
        if (isinf(x))
            return copysign((leftwards ? 0.75 : 0.25) * pi, y);
        return copysign(0.5 * pi, y);
    }
    if (isinf(x) || y == 0.0)
        return leftwards ? copysign(pi, y) : copysign(0.0, y);
    return atan2(y, x);
}

static int is_odd(double y)
{
    return fmod(fabs(y), 2.0) == 1.0;
}

int32_t ss_math_pow(double x, double y, double *result)
{
    double power;

    if (isfinite(x) && isfinite(y)) {
        power = pow(x, y);
        if (isnan(power) || (isinf(power) && x == 0.0))
            return SS_VALUE_ERROR;
        if (isinf(power))
            return SS_OVERFLOW_ERROR;
    } else if (isnan(x)) {
        power = y == 0.0 ? 1.0 : x;
    } else if (isnan(y)) {
        power = x == 1.0 ? 1.0 : y;
    } else if (isinf(x)) {
        const int odd = isfinite(y) && is_odd(y);
        if (y > 0.0)
            power = odd ? x : fabs(x);
        else if (y == 0.0)
            power = 1.0;
        else
            power = odd ? copysign(0.0, x) : 0.0;
    } else if (fabs(x) == 1.0) {
        power = 1.0;
    } else {
        power = (y > 0.0) == (fabs(x) > 1.0) ? INFINITY : 0.0;
    }
    *result = power;
    return 0;
}

int32_t ss_float_power(double x, double y, double *result)
{
    if (isfinite(x) && isfinite(y) && x != 0.0) {
        if (x < 0.0 && y != floor(y))
            return SS_VALUE_ERROR;
        double power = pow(fabs(x), y);
        if (!isfinite(power))
            return SS_OVERFLOW_ERROR;
        *result = x < 0.0 && is_odd(y) ? -power : power;
        return 0;
    }
    if (x == 0.0 && y < 0.0 && !isinf(y))
        return SS_ZERO_DIVISION_ERROR;
    /* With a zero, an infinity or a NaN the operator and math.pow agree on what remains. */
    return ss_math_pow(x, y, result);
}

int32_t ss_math_fmod(double x, double y, double *result)
{
    const double rest = isinf(y) && isfinite(x) ? x : fmod(x, y);

    if (isnan(rest) && !isnan(x) && !isnan(y))
        return SS_VALUE_ERROR;
    *result = rest;
    return 0;
}

int32_t ss_math_ldexp(double x, int64_t exponent, double *result)
{
    double scaled;

    if (x == 0.0 || !isfinite(x)) {
        scaled = x;
    } else if (exponent > INT_MAX) {
        return SS_OVERFLOW_ERROR;
    } else if (exponent < INT_MIN) {
        scaled = copysign(0.0, x);
    } else {
        scaled = ldexp(x, (int)exponent);
        if (isinf(scaled))
            return SS_OVERFLOW_ERROR;
    }
    *result = scaled;
    return 0;
}

double ss_float_mod(double x, double y)
{
    double rest = fmod(x, y);

    if (rest == 0.0)
        return copysign(0.0, y);
    if ((y < 0.0) != (rest < 0.0))
        rest += y;
    return rest;
}

double ss_float_floordiv(double x, double y)
{
    const double rest = fmod(x, y);
    double quotient = (x - rest) / y;

    if (rest != 0.0 && (y < 0.0) != (rest < 0.0))
        quotient -= 1.0;
    if (quotient == 0.0)
        return copysign(0.0, x / y);
    double whole = floor(quotient);
    /* (x - rest) / y is a whole number up to rounding: take the nearest one. */
    if (quotient - whole > 0.5)
        whole += 1.0;
    return whole;
}

uint64_t ss_int_power(uint64_t base, uint64_t exponent)
{
    uint64_t power = 1;

    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            power *= base;
        base *= base;
    }
    return power;
}

__extension__ typedef unsigned __int128 uint128_t;

static int bit_length(uint64_t value)
{
    return 64 - __builtin_clzll(value);
}

/*
 * Long division to at least 55 bits: 53 that a double keeps, one that decides the rounding, and one
 * that stands for all that follow ("sticky": set when the remainder is not zero). Then the conversion
 * to double rounds once, half to even, and the scaling is exact. The shifted dividend has at most
 * 55 + 64 bits.
 */
double ss_int_true_divide_u64(uint64_t dividend, uint64_t divisor)
{
    if (dividend == 0)
        return 0.0;
    int shift = 55 - (bit_length(dividend) - bit_length(divisor));
    if (shift < 0)
        shift = 0;
    const uint128_t scaled = (uint128_t)dividend << shift;
    uint64_t quotient = (uint64_t)(scaled / divisor);
    if ((uint128_t)quotient * divisor != scaled)
        quotient |= 1;
    return ldexp((double)quotient, -shift);
}

double ss_int_true_divide_i64(int64_t dividend, int64_t divisor)
{
    /* Unsigned negation: -INT64_MIN has no int64. */
    const uint64_t a = dividend < 0 ? -(uint64_t)dividend : (uint64_t)dividend;
    const uint64_t b = divisor < 0 ? -(uint64_t)divisor : (uint64_t)divisor;
    const double quotient = ss_int_true_divide_u64(a, b);

    return (dividend < 0) != (divisor < 0) ? -quotient : quotient;
}
