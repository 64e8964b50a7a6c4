/* SPDX-License-Identifier: BSD-3-Clause
 *
 * units.c - the standard units Time, args, conversions, Math and Finish. */
#include "units.h"
#include "rts.h"
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int32_t f_Time__GetTime(void)
{
    return (int32_t)((int64_t)(now_us() / 1e5) & INT32_MAX);
}

int32_t f_Time__SysMilli(void)
{
    return (int32_t)((int64_t)(now_us() / 1e3) & INT32_MAX);
}

double f_Time__SysMicro(void)
{
    return now_us();
}

void f_Time__Sleep(int32_t sec, int32_t nsec)
{
    double end = now_us() + sec * 1e6 + nsec / 1e3;
    while (now_us() < end) { /* the others run meanwhile */
        struct timespec t = {0, 50000};
        orc_poll();
        nanosleep(&t, NULL);
    }
}

void f_Time__PrintTime(const struct orc_array *name, int32_t ms)
{
    printf("%.*s: %d.%03d s\n", (int)name->n, name->n ? (char *)name->data : "", ms / 1000, ms % 1000);
}

int32_t f_args__Argc(void)
{
    return orc_argc;
}

void f_args__Argv(int32_t i, struct orc_array *r)
{
    const char *s = i >= 0 && i < orc_argc ? orc_argv[i] : "";
    orc_string(r, s, (int64_t)strlen(s));
}

static char *c_text(const struct orc_array *s)
{
    char *p = orc_alloc((size_t)s->n + 1);
    if (s->n)
        memcpy(p, s->data, (size_t)s->n);
    return p;
}

void f_args__Getenv(const struct orc_array *name, struct orc_array *r)
{
    char *n = c_text(name);
    const char *v = getenv(n);
    free(n);
    v = v ? v : "";
    orc_string(r, v, (int64_t)strlen(v));
}

int32_t f_conversions__StringToInt(const struct orc_array *s, int32_t *eaten)
{
    char *p = c_text(s), *end;
    long long v = strtoll(p, &end, 10);
    *eaten = (int32_t)(end - p);
    free(p);
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

double f_conversions__StringToReal(const struct orc_array *s, int32_t *eaten)
{
    char *p = c_text(s), *end;
    double v = strtod(p, &end);
    *eaten = (int32_t)(end - p);
    free(p);
    return v;
}

void f_conversions__IntToString(int32_t v, struct orc_array *r)
{
    char s[16];
    orc_string(r, s, snprintf(s, sizeof s, "%d", v));
}

void f_conversions__RealToString(double v, int32_t digits, struct orc_array *r)
{
    char s[64];
    digits = digits < 0 ? 0 : digits > 30 ? 30 : digits;
    int n = snprintf(s, sizeof s, "%.*g", digits, v);
    orc_string(r, s, n);
}

#define MATH(name)                  \
    double f_Math__##name(double x) \
    {                               \
        return name(x);             \
    }
MATH(sin)
MATH(cos)
MATH(tan)
MATH(asin)
MATH(acos)
MATH(atan)
MATH(sinh)
MATH(cosh)
MATH(tanh)
MATH(exp)
MATH(log)
MATH(log10)
MATH(sqrt)
MATH(ceil)
MATH(floor)
MATH(fabs)

double f_Math__atan2(double y, double x)
{
    return atan2(y, x);
}
double f_Math__pow(double x, double y)
{
    return pow(x, y);
}
double f_Math__fmod(double x, double y)
{
    return fmod(x, y);
}
double f_Math__ldexp(double x, int32_t e)
{
    return ldexp(x, e);
}
double f_Math__frexp(double x, int32_t *e)
{
    int i;
    double r = frexp(x, &i);
    *e = i;
    return r;
}
double f_Math__modf(double x, double *whole)
{
    return modf(x, whole);
}
double f_Math__IntToLongReal(int32_t i)
{
    return i;
}
int32_t f_Math__LongRealToInt(double x)
{
    return orc_trunc(x);
}
double f_Math__LongRealMin(void)
{
    return DBL_MIN;
}
double f_Math__LongRealMax(void)
{
    return DBL_MAX;
}

void f_Finish__Finish(void) {}
