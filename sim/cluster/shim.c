/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim.c - names and what they stand for. Functions of the C library are passed on only if they are on the list below:
 * pure ones, which keep nothing between calls. Whatever has a memory of its own (strtok, localtime, setlocale) or
 * reaches the world is a shim or is refused. */
#include "sim/cluster/shim.h"

#include "sim/cluster/arena.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <wchar.h>

/* Only in the archive of their header's macros. */
extern void *__memcpy_chk(void *, const void *, size_t, size_t);
extern void *__memmove_chk(void *, const void *, size_t, size_t);
extern void *__memset_chk(void *, int, size_t, size_t);
extern char *__strcpy_chk(char *, const char *, size_t);
extern char *__strncpy_chk(char *, const char *, size_t, size_t);
extern char *__strcat_chk(char *, const char *, size_t);
extern char *__stpcpy_chk(char *, const char *, size_t);
extern int __snprintf_chk(char *, size_t, int, size_t, const char *, ...);
extern int __vsnprintf_chk(char *, size_t, int, size_t, const char *, va_list);
extern int __sprintf_chk(char *, int, size_t, const char *, ...);
extern int __isoc99_sscanf(const char *, const char *, ...);

static char *shim_strerror(int e)
{
    const char *text = strerrordesc_np(e);
    struct vc_arena *a = vc_arena_now();
    if (text)
        snprintf(a->text, sizeof a->text, "%s", text);
    else
        snprintf(a->text, sizeof a->text, "Unknown error %d", e);
    return a->text;
}

static int shim_xpg_strerror_r(int e, char *to, size_t n)
{
    const char *text = strerrordesc_np(e);
    return snprintf(to, n, "%s", text ? text : "Unknown error") < (int)n ? 0 : ERANGE;
}

#define PURE(name)                    \
    {                                 \
#name, (void (*)(void))(name) \
    }
const struct vc_shim vc_shim_pure[] = {
    /* memory and text */
    PURE(memcpy),
    PURE(memmove),
    PURE(memset),
    PURE(memcmp),
    PURE(memchr),
    PURE(memrchr),
    PURE(rawmemchr),
    PURE(memmem),
    PURE(mempcpy),
    PURE(memccpy),
    PURE(bcmp),
    PURE(bzero),
    PURE(explicit_bzero),
    PURE(strlen),
    PURE(strnlen),
    PURE(strcmp),
    PURE(strncmp),
    PURE(strcasecmp),
    PURE(strncasecmp),
    PURE(strcpy),
    PURE(strncpy),
    PURE(stpcpy),
    PURE(stpncpy),
    PURE(strcat),
    PURE(strncat),
    PURE(strchr),
    PURE(strrchr),
    PURE(strchrnul),
    PURE(strstr),
    PURE(strcasestr),
    PURE(strspn),
    PURE(strcspn),
    PURE(strpbrk),
    PURE(strsep),
    PURE(strtok_r),
    PURE(strcoll),
    PURE(strverscmp),
    PURE(ffs),
    PURE(ffsl),
    PURE(ffsll),
    /* the same, checked */
    PURE(__memcpy_chk),
    PURE(__memmove_chk),
    PURE(__memset_chk),
    PURE(__strcpy_chk),
    PURE(__strncpy_chk),
    PURE(__strcat_chk),
    PURE(__stpcpy_chk),
    PURE(__snprintf_chk),
    PURE(__vsnprintf_chk),
    PURE(__sprintf_chk),
    /* numbers and text */
    PURE(strtol),
    PURE(strtoul),
    PURE(strtoll),
    PURE(strtoull),
    PURE(strtod),
    PURE(strtof),
    PURE(strtold),
    PURE(strtoimax),
    PURE(strtoumax),
    PURE(atoi),
    PURE(atol),
    PURE(atoll),
    PURE(atof),
    PURE(sprintf),
    PURE(snprintf),
    PURE(vsprintf),
    PURE(vsnprintf),
    PURE(sscanf),
    PURE(__isoc99_sscanf),
    PURE(abs),
    PURE(labs),
    PURE(llabs),
    PURE(div),
    PURE(ldiv),
    PURE(lldiv),
    /* characters */
    PURE(isalnum),
    PURE(isalpha),
    PURE(isblank),
    PURE(iscntrl),
    PURE(isdigit),
    PURE(isgraph),
    PURE(islower),
    PURE(isprint),
    PURE(ispunct),
    PURE(isspace),
    PURE(isupper),
    PURE(isxdigit),
    PURE(tolower),
    PURE(toupper),
    PURE(__ctype_b_loc),
    PURE(__ctype_tolower_loc),
    PURE(__ctype_toupper_loc),
    /* tables */
    PURE(bsearch),
    PURE(lfind),
    PURE(lsearch),
    /* calendars, of times that are given */
    PURE(difftime),
    PURE(timegm),
    /* errno lies with the thread, and is swapped */
    PURE(__errno_location),
    VC_SHIM(strerror),
    VC_SHIM_AS(__xpg_strerror_r, shim_xpg_strerror_r),
    PURE(strerrordesc_np),
    PURE(strerrorname_np),
    /* arithmetic */
    PURE(sqrt),
    PURE(sqrtf),
    PURE(cbrt),
    PURE(hypot),
    PURE(exp),
    PURE(exp2),
    PURE(expm1),
    PURE(expf),
    PURE(log),
    PURE(log2),
    PURE(log10),
    PURE(log1p),
    PURE(logf),
    PURE(pow),
    PURE(powf),
    PURE(sin),
    PURE(cos),
    PURE(tan),
    PURE(sinf),
    PURE(cosf),
    PURE(sincos),
    PURE(asin),
    PURE(acos),
    PURE(atan),
    PURE(atan2),
    PURE(atan2f),
    PURE(sinh),
    PURE(cosh),
    PURE(tanh),
    PURE(erf),
    PURE(erfc),
    PURE(tgamma),
    PURE(floor),
    PURE(floorf),
    PURE(ceil),
    PURE(ceilf),
    PURE(trunc),
    PURE(truncf),
    PURE(round),
    PURE(roundf),
    PURE(lround),
    PURE(llround),
    PURE(rint),
    PURE(lrint),
    PURE(llrint),
    PURE(nearbyint),
    PURE(fabs),
    PURE(fabsf),
    PURE(fmod),
    PURE(fmodf),
    PURE(remainder),
    PURE(fmin),
    PURE(fmax),
    PURE(fma),
    PURE(ldexp),
    PURE(frexp),
    PURE(modf),
    PURE(scalbn),
    PURE(copysign),
    PURE(nan),
    VC_SHIM_END,
};

/* Variables of the C library: each virtual process has its own, in its arena. */
static const struct {
    const char *name;
    size_t at;
} variables[] = {
    {"stdin", offsetof(struct vc_arena, in)},
    {"stdout", offsetof(struct vc_arena, out)},
    {"stderr", offsetof(struct vc_arena, err)},
    {"optarg", offsetof(struct vc_arena, arg)},
    {"optind", offsetof(struct vc_arena, index)},
    {"opterr", offsetof(struct vc_arena, tell)},
    {"optopt", offsetof(struct vc_arena, letter)},
    {"environ", offsetof(struct vc_arena, environment)},
    {"__environ", offsetof(struct vc_arena, environment)},
    {"program_invocation_name", offsetof(struct vc_arena, name)},
    {"program_invocation_short_name", offsetof(struct vc_arena, name)},
};

struct vc_binding vc_shim_bind(const char *name)
{
    static const struct vc_shim *const tables[] = {
        vc_shim_memory, vc_shim_time, vc_shim_process, vc_shim_options, vc_shim_print,   vc_shim_stdio,
        vc_shim_files,  vc_shim_sort, vc_shim_poll,    vc_shim_runnel,  vc_shim_exports, vc_shim_pure,
    };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (strcmp(variables[i].name, name) == 0)
            return (struct vc_binding){.kind = VC_BIND_ARENA, .value = variables[i].at};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (const struct vc_shim *s = tables[t]; s->name; s++)
            if (strcmp(s->name, name) == 0)
                return (struct vc_binding){.kind = VC_BIND_ADDRESS, .value = (uint64_t)(uintptr_t)s->fn};
    /* What the compiler's sanitizers add is theirs. */
    if (strncmp(name, "__asan_", 7) == 0 || strncmp(name, "__ubsan_", 8) == 0 || strncmp(name, "__tsan_", 7) == 0) {
        void *at = dlsym(RTLD_DEFAULT, name);
        if (at)
            return (struct vc_binding){.kind = VC_BIND_ADDRESS, .value = (uint64_t)(uintptr_t)at};
    }
    return (struct vc_binding){.kind = VC_BIND_REFUSED};
}
