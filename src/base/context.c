/* SPDX-License-Identifier: BSD-3-Clause
 *
 * context.c - switches contexts by the C interface of Boost.Context, or by ucontext where Boost is missing. */
#include "base/coro.h"

#include <stdint.h>

#if !defined(RNL_HAVE_FCONTEXT)
#define RNL_HAVE_FCONTEXT 0
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONTEXT_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define CONTEXT_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CONTEXT_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define CONTEXT_TSAN 1
#endif
#if defined(CONTEXT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(CONTEXT_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if RNL_HAVE_FCONTEXT
/* Declared here because Boost's headers are C++. */
struct transfer {
    void *from, *data;
};
extern void *make_fcontext(void *stack_top, size_t size, void (*entry)(struct transfer));
extern struct transfer jump_fcontext(void *to, void *data);
#else
#include <ucontext.h>
#endif
#if RNL_HAVE_FCONTEXT && defined(__x86_64__)
#include <immintrin.h>
#define CARRY_FLAGS 1
#endif

#if defined(CARRY_FLAGS)
/* The saved state begins with MXCSR. Its exception flags (bits 0..5) are sticky and soon differ from the current ones,
 * and loading a differing value costs 50 ns on recent Intel cores. As with any call, flags raised before are still
 * raised after, so the current flags are added to the saved ones. */
enum { MXCSR_FLAGS = 0x3f };

static inline void carry_flags(const struct rnl_context *c, void *to)
{
    uint32_t *saved = to, mine = _mm_getcsr() & MXCSR_FLAGS;
    if (c->carries && (*saved & MXCSR_FLAGS) != mine)
        *saved |= mine;
}
#else
static inline void carry_flags(const struct rnl_context *c, void *to)
{
    (void)c, (void)to;
}
#endif

/* Called inside, just after a switch: learns the bounds of the stack that was left, which may be another thread's each
 * time. */
static inline void arrived(struct rnl_context *c)
{
    (void)c;
#if defined(CONTEXT_ASAN)
    __sanitizer_finish_switch_fiber(c->fake_stack, &c->bottom_outside, &c->bytes_outside);
#endif
}

#if RNL_HAVE_FCONTEXT
static void entry(struct transfer t)
{
    struct rnl_context *c = t.data;
    c->outside = t.from;
    arrived(c);
    c->fn(c->arg);
}

static void *make(struct rnl_context *c)
{
    void *at = make_fcontext(c->stack + c->stack_bytes, c->stack_bytes, entry);
#if defined(CARRY_FLAGS)
    const uint32_t *saved = at;
    uint16_t control;
    __asm__("fnstcw %0" : "=m"(control));
    c->carries = saved[0] == _mm_getcsr() && (saved[1] & 0xffff) == control;
#endif
    return at;
}
#else
/* makecontext passes only ints, so the pointer comes in two halves. */
static void entry(unsigned high, unsigned low)
{
    struct rnl_context *c = (struct rnl_context *)(uintptr_t)((uint64_t)high << 32 | low);
    arrived(c);
    c->fn(c->arg);
}

/* Makes the ucontext on the stack's highest bytes, for it is used once. */
static void *make(struct rnl_context *c)
{
    uint64_t p = (uint64_t)(uintptr_t)c;
    uintptr_t top = (uintptr_t)(c->stack + c->stack_bytes - sizeof(ucontext_t)) & ~(uintptr_t)63;
    ucontext_t *u = (ucontext_t *)top;
    getcontext(u);
    u->uc_stack.ss_sp = c->stack;
    u->uc_stack.ss_size = (size_t)(top - (uintptr_t)c->stack);
    u->uc_link = NULL;
    makecontext(u, (void (*)(void))entry, 2, (unsigned)(p >> 32), (unsigned)p);
    return u;
}
#endif

void rnl_context_make(struct rnl_context *c, void *stack, size_t stack_bytes, void (*fn)(void *arg), void *arg)
{
    c->fn = fn;
    c->arg = arg;
    c->stack = stack;
    c->stack_bytes = stack_bytes;
    c->bottom_inside = stack;
    c->bytes_inside = stack_bytes;
    c->fake_stack = NULL;
#if defined(CONTEXT_TSAN)
    c->fiber = c->fiber_inside = __tsan_create_fiber(0);
#endif
    c->inside = make(c);
}

void rnl_context_enter(struct rnl_context *c)
{
#if defined(CONTEXT_ASAN)
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, c->bottom_inside, c->bytes_inside);
#endif
#if defined(CONTEXT_TSAN)
    c->fiber_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(c->fiber_inside, 0);
#endif
#if RNL_HAVE_FCONTEXT
    carry_flags(c, c->inside);
    c->inside = jump_fcontext(c->inside, c).from;
#else
    ucontext_t here, *to = c->inside;
    here.uc_stack = (stack_t){.ss_flags = 0}; /* swapcontext leaves it unset, and the address sanitizer reads it */
    c->outside = &here;
    swapcontext(&here, to);
#endif
#if defined(CONTEXT_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack, &c->bottom_inside, &c->bytes_inside);
#endif
}

void rnl_context_leave(struct rnl_context *c, int last)
{
    (void)last;
#if defined(CONTEXT_ASAN)
    __sanitizer_start_switch_fiber(last ? NULL : &c->fake_stack, c->bottom_outside, c->bytes_outside);
#endif
#if defined(CONTEXT_TSAN)
    c->fiber_inside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(c->fiber_outside, 0);
#endif
#if RNL_HAVE_FCONTEXT
    carry_flags(c, c->outside);
    c->outside = jump_fcontext(c->outside, c).from;
#else
    ucontext_t here, *to = c->outside;
    here.uc_stack = (stack_t){.ss_flags = 0};
    c->inside = &here;
    swapcontext(&here, to);
#endif
    arrived(c);
}

void rnl_context_forget(struct rnl_context *c)
{
    (void)c;
#if defined(CONTEXT_ASAN)
    if (c->stack)
        __asan_unpoison_memory_region(c->stack, c->stack_bytes);
#endif
#if defined(CONTEXT_TSAN)
    if (c->fiber)
        __tsan_destroy_fiber(c->fiber);
    c->fiber = NULL;
#endif
}
