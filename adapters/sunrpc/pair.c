/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.c - a pair: making it, ringing, arming, waiting.
 *
 * Sleeping and waking. The one who waits stores a number as `armed`, fences for every process (membarrier), looks once
 * more, and sleeps on the doorbell. The other one publishes, loads `armed`, and sends one byte for each number it has
 * not rung for; it needs no fence, unless one of the two has no membarrier. A machine that is crowded lets the waiting
 * side stay armed for each record, which saves a barrier for each sleep. */
#include "pair_internal.h"

#include "base/fence.h"
#include "host.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint32_t always = UINT32_MAX; /* stored as armed: ring for each record */
enum {
    NUDGE_MS = 20, /* who has slept so long without an answer rings once, in case that the other one is not armed */
    SLEEP_MS_MAX = 1000,
    SENSE_EACH = 16 /* a wait of so many measures how far the peer is */
};

static void send_byte(struct rnl_rpc_pair *p)
{
    if (send(p->link.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN && errno != EINTR)
        p->link.broken = true;
}

void rnl_rpc_pair_ring(struct rnl_rpc_pair *p, const _Atomic uint32_t *armed, uint32_t *rung)
{
    if (p->fence_each)
        rnl_full_fence();
    else
        atomic_signal_fence(memory_order_seq_cst); /* the other side's membarrier orders the store before this load */
    uint32_t a = atomic_load_explicit(armed, memory_order_relaxed);
    if (RNL_LIKELY(a == 0) || (a == *rung && a != always))
        return;
    *rung = a;
    send_byte(p);
}

static void pair_drain(struct rnl_rpc_link *link)
{
    char bytes[64];
    ssize_t n;
    do
        n = recv(link->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    while (n == (ssize_t)sizeof bytes || (n < 0 && errno == EINTR));
    if (n == 0 || (n < 0 && errno != EAGAIN))
        link->broken = true;
}

static uint32_t next_arming(struct rnl_rpc_pair *p)
{
    do
        p->arming++;
    while (p->arming == 0 || p->arming == always);
    return p->arming;
}

static void pair_arm(struct rnl_rpc_link *link, enum rnl_rpc_arming how)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    uint32_t number = how == RNL_RPC_ARM_NONE ? 0 : how == RNL_RPC_ARM_ALWAYS ? always : next_arming(p);
    link->armed = (uint8_t)how;
    atomic_store_explicit(&p->in->record_armed, number, memory_order_relaxed);
}

/* Arms for what is waited for, fences, looks. Returns true if it came meanwhile. *ms = how long to sleep at most. */
static bool arm_and_look(struct rnl_rpc_pair *p, bool (*ready)(struct rnl_rpc_pair *), bool crowded, uint64_t *ms)
{
    bool for_room = ready == rnl_rpc_pair_has_room, fence = for_room;
    if (for_room && p->link.shared)
        *ms = RNL_RPC_UNSURE_MS; /* another process may take the byte that is for this one */
    else if (crowded ? p->link.armed != RNL_RPC_ARM_ALWAYS : true) {
        pair_arm(&p->link, crowded ? RNL_RPC_ARM_ALWAYS : RNL_RPC_ARM_ONCE);
        fence = true;
    }
    if (for_room)
        atomic_store_explicit(&p->out->room_armed, next_arming(p), memory_order_relaxed);
    if (fence && !rnl_rpc_fence())
        *ms = RNL_RPC_UNSURE_MS;
    return ready(p);
}

static void disarm(struct rnl_rpc_pair *p, bool (*ready)(struct rnl_rpc_pair *), bool crowded)
{
    if (!crowded && !(p->link.shared && ready == rnl_rpc_pair_has_room)) /* else that is for who reads */
        pair_arm(&p->link, RNL_RPC_ARM_NONE);
    if (ready == rnl_rpc_pair_has_room)
        atomic_store_explicit(&p->out->room_armed, 0, memory_order_relaxed);
}

static bool spin(struct rnl_rpc_pair *p, bool (*ready)(struct rnl_rpc_pair *), uint64_t now_ns)
{
    struct rnl_rpc_spinner spinner;
    bool same_cpu = p->link.peer_cpu == rnl_rpc_cpu();
    bool sense = ready == rnl_rpc_pair_here && p->waits++ % SENSE_EACH == 0;
    const _Atomic uint64_t *header = &p->in->cell[p->in_cell % RNL_RPC_CELLS].header;
    uint64_t last = atomic_load_explicit(header, memory_order_relaxed);
    if (p->link.armed == RNL_RPC_ARM_ALWAYS && !p->link.shared)
        pair_arm(&p->link, RNL_RPC_ARM_NONE);
    rnl_rpc_spinner_begin(&spinner, now_ns);
    do {
        if (sense)
            (void)rnl_host_sense_load(&rnl_rpc_host, header, last, &p->link.distance);
        if (ready(p))
            return true;
        if (ready == rnl_rpc_pair_has_room && p->link.blocked)
            p->link.blocked(&p->link);
    } while (rnl_rpc_spin(&spinner, same_cpu));
    return false;
}

bool rnl_rpc_pair_wait(struct rnl_rpc_pair *p, bool (*ready)(struct rnl_rpc_pair *), uint64_t deadline_ns)
{
    if (ready(p))
        return true;
    uint64_t now = rnl_rpc_now_ns();
    bool nudged = false;
    if (now < deadline_ns && !rnl_rpc_is_crowded(&rnl_rpc_crowd, now) && spin(p, ready, now))
        return true;
    for (;;) {
        bool crowded = rnl_rpc_is_crowded(&rnl_rpc_crowd, rnl_rpc_now_ns());
        uint64_t ms = nudged ? SLEEP_MS_MAX : NUDGE_MS;
        bool is = arm_and_look(p, ready, crowded, &ms);
        now = rnl_rpc_now_ns();
        if (is || p->link.broken || now >= deadline_ns) {
            disarm(p, ready, crowded);
            return is;
        }
        uint64_t left_ms = (deadline_ns - now) / 1000000 + 1;
        int woken = rnl_rpc_sleep_on(p->link.fd, left_ms < ms ? left_ms : ms);
        if (woken > 0) {
            pair_drain(&p->link);
        } else if (woken == 0 && ms == NUDGE_MS) {
            nudged = true;
            send_byte(p);
        }
        disarm(p, ready, crowded);
        if (ready == rnl_rpc_pair_has_room && p->link.blocked)
            p->link.blocked(&p->link);
    }
}

static bool pair_is_here(struct rnl_rpc_link *link)
{
    return rnl_rpc_pair_here(rnl_rpc_pair_of(link));
}

static bool pair_wait(struct rnl_rpc_link *link, uint64_t deadline_ns)
{
    return rnl_rpc_pair_wait(rnl_rpc_pair_of(link), rnl_rpc_pair_here, deadline_ns);
}

static void pair_share(struct rnl_rpc_link *link)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    pthread_mutexattr_t how;
    if (link->shared)
        return;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&p->writer, &how);
    pthread_mutexattr_destroy(&how);
    link->shared = true;
}

static bool pair_claim(struct rnl_rpc_link *link)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    if (pthread_mutex_lock(&p->writer) == EOWNERDEAD) {
        pthread_mutex_consistent(&p->writer);
        if (p->parts > 0) /* it has begun a record that nobody can end */
            link->broken = true;
        p->part = link->out_at = link->out_end = NULL;
    }
    if (!link->broken)
        return true;
    pthread_mutex_unlock(&p->writer);
    return false;
}

static void pair_release(struct rnl_rpc_link *link)
{
    pthread_mutex_unlock(&rnl_rpc_pair_of(link)->writer);
}

static void pair_close(struct rnl_rpc_link *link)
{
    struct rnl_rpc_pair *p = rnl_rpc_pair_of(link);
    rnl_rpc_segment_unmap(p->segment);
    munmap(p, sizeof *p);
}

static const struct rnl_rpc_link_ops pair_ops = {
    .room = rnl_rpc_pair_room,
    .end = rnl_rpc_pair_end,
    .drop = rnl_rpc_pair_drop,
    .here = pair_is_here,
    .peek = rnl_rpc_pair_peek,
    .next = rnl_rpc_pair_next,
    .leave = rnl_rpc_pair_leave,
    .wait = pair_wait,
    .arm = pair_arm,
    .drain = pair_drain,
    .share = pair_share,
    .claim = pair_claim,
    .release = pair_release,
    .close = pair_close,
};

struct rnl_rpc_link *rnl_rpc_pair_new(struct rnl_rpc_segment *segment, int fd, bool server, bool peer_barrier)
{
    void *at = mmap(NULL, sizeof(struct rnl_rpc_pair), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        rnl_rpc_segment_unmap(segment);
        return NULL;
    }
    struct rnl_rpc_pair *p = at;
    rnl_rpc_host_begin();
    p->link.ops = &pair_ops;
    p->link.fd = fd;
    p->segment = segment;
    p->out = &segment->ring[server ? RNL_RPC_REPLIES : RNL_RPC_CALLS];
    p->in = &segment->ring[server ? RNL_RPC_CALLS : RNL_RPC_REPLIES];
    p->out_cell_stop = RNL_RPC_CELLS;
    p->out_bulk_stop = RNL_RPC_BULK_BYTES;
    p->fence_each = !peer_barrier || !rnl_rpc_host.facts.have_membarrier;
    return &p->link;
}
