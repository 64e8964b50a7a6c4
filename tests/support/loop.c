/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loop.c - see loop.h. */
#include "support/loop.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <signal.h>

#include "endpoint/endpoint.h"
#include "net/datagram/udp.h"
#include "net/wire/bytes.h"
#include "support/must.h"

#define MEET_NS     ((uint64_t)60 * 1000 * 1000 * 1000)
#define PATIENCE_NS 5000000

static struct rnl_env_ops ops[TEST_LOOP_MAX];
static struct rnl_addr own[TEST_LOOP_MAX], *address = own;
static struct rnl_socket *socket_of[TEST_LOOP_MAX];
static uint8_t local, apart;

static int place(struct rnl_env *env, uint32_t rank, struct rnl_rank_address *out)
{
    if (rank == env->rank || ((local >> rank & 1) && (local >> env->rank & 1)))
        return 0;
    *out = (struct rnl_rank_address){.same_kernel = !(apart >> rank & 1), .addr_bytes = address[rank].len};
    memcpy(out->addr, address[rank].bytes, address[rank].len);
    return 1;
}

void test_loop_attach(rnl_endpoint *ep, const struct test_loop *opt)
{
    static const struct test_loop none;
    static const struct rnl_socket_addr ipv4 = {.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1}}, ipv6 = {.ip = {[15] = 1}};
    struct rnl_env *env = ep->env;
    opt = opt ? opt : &none;
    TEST_MUST(env->rank < TEST_LOOP_MAX);
    local = opt->local;
    apart = opt->apart;
    struct rnl_socket **s = &socket_of[env->rank];
    struct rnl_kernel_options kernel = opt->kernel;
    kernel.claims = rnl_wire_handshake_room;
    TEST_MUST(rnl_kernel_socket_open(opt->ipv6 ? &ipv6 : &ipv4, &kernel, s) == 0);
    rnl_udp_addr_of(&(*s)->self, &address[env->rank]);
    ops[env->rank] = *env->ops;
    ops[env->rank].rank_address = place;
    env->ops = &ops[env->rank];
    env->protect = opt->protect;
    env->facts.round_trip_ns = opt->trip_ns ? opt->trip_ns : rnl_host_round_trip_ns();
    if (opt->wrap)
        *s = opt->wrap(*s, env->rank);
    TEST_MUST(rnl_udp_transport_new(env, *s, NULL, &env->datagrams) == 0);
    memset(env->job_key, opt->strangers >> env->rank & 1 ? 0x44 : 0x33, sizeof env->job_key);
    TEST_MUST(rnl_ep_net_new(ep, &opt->remote) == 0);
    rnl_ep_set_pending(ep);
}

struct rnl_socket_addr test_loop_addr(unsigned rank)
{
    struct rnl_socket_addr a;
    TEST_MUST(rnl_udp_addr_read(&address[rank], &a) == 0);
    return a;
}

struct rnl_socket *test_loop_socket(unsigned rank)
{
    return socket_of[rank];
}

void test_loop_pin(unsigned cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static int all_came(struct test_loop_side *s)
{
    uint32_t mine = atomic_load_explicit(&s->run->at[s->rank], memory_order_relaxed);
    for (unsigned i = 0; i < s->size; i++) /* acquire pairs with the release of whoever comes */
        if (atomic_load_explicit(&s->run->at[i], memory_order_acquire) < mine)
            return 0;
    return 1;
}

static void meet(struct test_loop_side *s, int takes_in)
{
    uint64_t until = test_now_ns() + MEET_NS;
    atomic_fetch_add_explicit(&s->run->at[s->rank], 1, memory_order_release);
    while (!all_came(s)) {
        TEST_MUST(test_now_ns() < until);
        if (takes_in)
            TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
        else
            sched_yield();
    }
}

void test_loop_meet(struct test_loop_side *s)
{
    meet(s, 1);
}

static void run_one(struct test_loop_run *run, unsigned rank, unsigned size, const struct test_loop *opt,
                    void (*body)(struct test_loop_side *), void *arg)
{
    struct test_loop_side s = {.rank = rank, .size = size, .run = run, .arg = arg};
    rnl_hub *hub; /* one for each process: to the hub its other ranks have not come yet */
    address = run->address;
    TEST_MUST(rnl_hub_new(size, &hub) == 0);
    const struct rnl_options o = {.size = sizeof o, .hub = hub, .hub_rank = rank};
    TEST_MUST(rnl_open(&s.ep, &o) == 0);
    test_loop_attach(s.ep, opt);
    meet(&s, 0);
    body(&s);
    atomic_fetch_add_explicit(&run->at[rank], 1, memory_order_release);
    for (uint64_t until = test_now_ns() + MEET_NS; !all_came(&s);) { /* asleep: others may need long */
        TEST_MUST(test_now_ns() < until);
        TEST_MUST(rnl_wait(s.ep, PATIENCE_NS) >= RNL_TIMED_OUT);
    }
}

int test_loop_run(unsigned size, const struct test_loop *opt, void (*body)(struct test_loop_side *), void *arg)
{
    pid_t child[TEST_LOOP_MAX], parent = getpid();
    int failed = 0, status;
    struct test_loop_run *run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_MUST(run != MAP_FAILED && size <= TEST_LOOP_MAX);
    unsetenv("RNL_TEST_REMOTE"); /* a network of its own */
    for (unsigned i = 0; i < size; i++) {
        child[i] = fork();
        TEST_MUST(child[i] >= 0);
        if (child[i] > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            run_one(run, i, size, opt, body, arg);
        _exit(0);
    }
    for (unsigned left = size; left > 0;) {
        pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno == EINTR)
            continue;
        TEST_MUST(pid > 0);
        left--;
        for (unsigned i = 0; i < size; i++) {
            if (child[i] == pid)
                child[i] = 0;
            else if (status != 0 && child[i]) /* they would wait for it */
                kill(child[i], SIGKILL);
        }
        failed |= status != 0;
    }
    munmap(run, sizeof *run);
    return failed;
}
