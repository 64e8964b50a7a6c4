/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AF_XDP sockets on a wire between two namespaces: what goes by the rings, what by the kernel, and what happens when
 * something changes. Side 0 has one socket, side 1 two that share a queue. */
#include "net/socket/xdp/xdp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netinet/ip_icmp.h>
#include <netpacket/packet.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/notes.h"
#include "net/socket/kernel.h"
#include "net/socket/xdp/frame.h"
#include "net/socket/xdp/queue.h"
#include "net/socket/xdp/show.h"
#include "runnel/runnel.h"
#include "support/must.h"
#include "support/netns.h"
#include "support/unit.h"

enum { SOCKETS = 3, ROOM = 2048, PATIENCE_MS = 30000 };

static struct rnl_socket *s[SOCKETS];
static struct rnl_socket_addr at[SOCKETS];
static struct rnl_xdp_queue *queue[2];
static uint8_t got[ROOM];
static struct rnl_socket_in in;
static uint16_t port_next; /* for the socket that is opened next; 0 = the kernel chooses */
/* By what the sockets are reached: the address of host N ends with N, and 2 is the neighbour of side 0. */
static const struct family {
    uint8_t ip[15];
    uint32_t heads; /* bytes of the headers of IP and UDP */
    bool of_link;
    const char *neighbour;
} ipv4 = {{[10] = 0xff, 0xff, 10, 77}, 28, false, "10.77.0.2"}, ipv6 = {{0xfd, 0x77}, 48, false, "fd77::2"},
  link_local = {{0xfe, 0x80}, 48, true, "fe80::2"}, *family = &ipv4;

/* The address of a socket as those of this side write it. */
static struct rnl_socket_addr as_on(unsigned side, struct rnl_socket_addr a)
{
    if (family->of_link) {
        support_netns_enter(side);
        a.scope = if_nametoindex(SUPPORT_NETNS_WIRE);
    }
    return a;
}

static struct rnl_socket *open_kernel(uint8_t side, uint8_t host)
{
    struct rnl_socket_addr a = {.port = port_next ? port_next++ : 0};
    struct rnl_socket *out;
    memcpy(a.ip, family->ip, sizeof family->ip);
    a.ip[15] = host;
    support_netns_enter(side);
    a = as_on(side, a);
    assert_int_equal(rnl_kernel_socket_open(&a, NULL, &out), 0);
    return out;
}

/* Changes the kernel's tables, and waits for longer than a socket takes to look at them again. */
#define CHANGE(...) (support_netns_do(__VA_ARGS__), test_sleep_ms(10))

static int set_up(void **state)
{
    uint16_t port[SOCKETS];
    (void)state;
    support_netns_do(0, "ip link set wire mtu 1500 && ip neigh flush dev wire");
    for (uint8_t i = 0; i < SOCKETS; i++) {
        s[i] = open_kernel(i > 0, i ? 2 : 1);
        at[i] = s[i]->self;
        port[i] = at[i].port;
    }
    for (unsigned side = 0; side < 2; side++) {
        support_netns_enter(side);
        assert_int_equal(rnl_xdp_queue_open("wire", 0, RNL_XDP_ANY, port + side, 1 + side, &queue[side]), 0);
        for (uint32_t i = 0; i <= side; i++)
            assert_int_equal(rnl_xdp_socket_new(s[side + i], rnl_xdp_queue_socket(queue[side], i),
                                                rnl_xdp_queue_memory(queue[side]), NULL, &s[side + i]),
                             0);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < SOCKETS; i++)
        if (s[i])
            s[i]->ops->close(s[i]);
    for (int i = 0; i < 2; i++)
        if (queue[i])
            rnl_xdp_queue_close(queue[i]);
    memset(s, 0, sizeof s);
    memset(queue, 0, sizeof queue);
    return 0;
}

static struct rnl_xdp_facts facts(int i)
{
    struct rnl_xdp_facts f;
    rnl_xdp_socket_facts(s[i], &f);
    return f;
}

static uint32_t send_to(int from, int to, const void *data, uint32_t bytes)
{
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = as_on(from > 0, at[to]), .at = data, .bytes = bytes};
    return s[from]->ops->send(s[from], &o, 1, &r) == 1 ? RNL_SOCKET_WENT : r.stop;
}

static bool comes(int to, unsigned ms)
{
    const uint64_t until = test_now_ns() + ms * 1000000ull;
    in = (struct rnl_socket_in){.at = got, .room = sizeof got};
    do
        if (s[to]->ops->recv(s[to], &in, 1) == 1)
            return true;
    while (test_now_ns() < until);
    return false;
}

/* Sends one of so many bytes again and again until it is there: `rings` says that it has left by them. */
static bool passes(int from, int to, uint32_t bytes, bool rings)
{
    static uint8_t data[ROOM];
    static uint8_t number;
    const uint64_t until = test_now_ns() + PATIENCE_MS * 1000000ull;
    const struct rnl_socket_addr sender = as_on(to > 0, at[from]);
    for (data[0] = ++number; test_now_ns() < until;) {
        const uint64_t before = facts(from).frames.sent;
        (void)send_to(from, to, data, bytes);
        const bool by_rings = facts(from).frames.sent > before;
        while (comes(to, 20))
            if (in.bytes == bytes && got[0] == number && rnl_socket_addr_equal(&in.from, &sender) && by_rings == rings)
                return true;
    }
    return false;
}

/* What `runnel info --pid` would print has this line. */
static bool __attribute__((format(printf, 1, 2))) shows(const char *format, ...)
{
    static char text[RNL_NOTES_TEXT_MAX + 1];
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (void)rnl_notes_read(getpid(), text);
    const char *found = strstr(text, line);
    return found && (found == text || found[-1] == '\n') && found[strlen(line)] == '\n';
}

/* ---- cases ---- */

static void both_ways_and_both_endpoints(void **state)
{
    (void)state;
    for (int i = 1; i < SOCKETS; i++) {
        assert_true(passes(0, i, 8, true));
        assert_true(passes(i, 0, 1500 - family->heads, true));
    }
    assert_true(facts(0).works && facts(0).mode == RNL_XDP_GENERIC); /* veth */
    test_sleep_ms(110);
    assert_int_equal(send_to(0, 1, "x", 1), RNL_SOCKET_WENT);
    assert_true(comes(1, PATIENCE_MS) &&
                shows("AF_XDP: queue 0 of wire, generic: rings to 2 addresses, the kernel to 0"));
    assert_true(passes(1, 2, 100, false)); /* both on one host: over loopback */
}

/* More than the chunks of all endpoints, so that they pass through the shared rings several times. */
static void chunks_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < 4000; i++) {
        const int to = 1 + i % 2;
        const uint64_t before = facts(0).sent_kernel;
        assert_int_equal(send_to(0, to, &i, sizeof i), RNL_SOCKET_WENT);
        assert_true(comes(to, PATIENCE_MS));
        assert_int_equal(in.bytes, sizeof i);
        assert_memory_equal(got, &i, sizeof i);
        assert_int_equal(send_to(to, 0, &i, 4), RNL_SOCKET_WENT);
        assert_true(comes(0, PATIENCE_MS));
        assert_true(facts(0).sent_kernel <= before + 1);
    }
    assert_true(facts(0).frames.received > 3900 && facts(1).frames.received > 1900 && facts(2).frames.received > 1900);
}

static int tcp(unsigned side, int listener, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr("10.77.0.2")};
    support_netns_enter(side);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener) {
        assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
        assert_int_equal(listen(fd, 1), 0);
    } else {
        assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    }
    return fd;
}

static bool echoes(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("10.77.0.2")};
    struct icmphdr ask = {.type = ICMP_ECHO, .un.echo.id = 7, .checksum = 0};
    struct timeval wait = {.tv_sec = 2};
    uint8_t answer[256];
    support_netns_enter(0);
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), 0);
    ask.checksum = (uint16_t) ~(ICMP_ECHO + 7);
    bool is = sendto(fd, &ask, sizeof ask, 0, (struct sockaddr *)&a, sizeof a) == sizeof ask;
    ssize_t n = is ? recv(fd, answer, sizeof answer, 0) : -1;
    close(fd);
    return n >= 28 && answer[20] == ICMP_ECHOREPLY;
}

/* Ping, TCP to a port with the number of ours, and UDP to another port and to another address of the interface, which
 * was not there when the queue was opened. */
static void other_traffic_is_the_kernels(void **state)
{
    char text[65536] = "";
    (void)state;
    assert_true(passes(0, 1, 8, true));
    const uint64_t before =
        facts(1).frames.received + facts(1).frames.refused + facts(2).frames.received + facts(2).frames.refused;
    int listener = tcp(1, 1, at[1].port), client = tcp(0, 0, at[1].port), server = accept(listener, NULL, NULL);
    assert_true(server >= 0);
    for (int i = 0; i < 64; i++) {
        size_t there = 0;
        assert_int_equal(send(client, text, sizeof text / 2, 0), sizeof text / 2);
        while (there < sizeof text / 2) {
            ssize_t n = recv(server, text, sizeof text, 0);
            assert_true(n > 0);
            there += (size_t)n;
        }
    }
    close(client);
    close(server);
    close(listener);
    assert_true(echoes());
    support_netns_do(1, "ip addr add 10.77.0.9/24 dev wire");
    struct rnl_socket_addr same_port = {.ip = {[10] = 0xff, 0xff, 10, 77, 0, 9}, .port = at[1].port};
    support_netns_enter(1);
    struct rnl_socket *other[2] = {open_kernel(1, 2), NULL};
    assert_int_equal(rnl_kernel_socket_open(&same_port, NULL, &other[1]), 0);
    for (int i = 0; i < 2; i++) {
        const struct rnl_socket_out o = {.to = other[i]->self, .at = "x", .bytes = 1};
        struct rnl_socket_result r;
        uint64_t until = test_now_ns() + PATIENCE_MS * 1000000ull;
        int n = 0;
        in = (struct rnl_socket_in){.at = got, .room = sizeof got};
        for (; n == 0 && test_now_ns() < until; n = other[i]->ops->recv(other[i], &in, 1))
            (void)s[0]->ops->send(s[0], &o, 1, &r);
        assert_int_equal(n, 1);
        other[i]->ops->close(other[i]);
    }
    support_netns_do(1, "ip addr del 10.77.0.9/24 dev wire");
    assert_int_equal(facts(1).frames.received + facts(1).frames.refused + facts(2).frames.received +
                         facts(2).frames.refused,
                     before);
}

static void a_neighbour_that_changes_is_followed(void **state)
{
    (void)state;
    assert_true(passes(0, 1, 8, true));
    CHANGE(1, "ip link set wire address 02:00:00:00:77:07");
    CHANGE(0, "ip neigh replace %s lladdr 02:00:00:00:77:07 dev wire nud reachable", family->neighbour);
    assert_true(passes(0, 1, 8, true));
    CHANGE(0, "ip neigh replace %s lladdr 02:00:00:00:77:08 dev wire nud permanent", family->neighbour);
    (void)send_to(0, 1, "x", 1);
    (void)send_to(0, 1, "y", 1);
    assert_false(comes(1, 50)); /* it goes where the kernel's table says */
    CHANGE(0, "ip neigh del %s dev wire", family->neighbour);
    assert_true(passes(0, 1, 8, true)); /* the kernel finds it again by itself */
}

static void what_the_link_does_not_take_is_refused(void **state)
{
    static const uint8_t data[1500];
    (void)state;
    assert_true(passes(0, 1, 1500 - family->heads, true));
    CHANGE(0, "ip link set wire mtu 1300");
    assert_true(passes(0, 1, 1300 - family->heads, true));
    assert_int_equal(send_to(0, 1, data, 1301 - family->heads), RNL_SOCKET_TOO_LONG);
    CHANGE(0, "ip link set wire mtu 1500");
    assert_true(passes(0, 1, 1500 - family->heads, true));
}

/* The cases above over another family. */
static void over(const struct family *f)
{
    tear_down(NULL);
    family = f;
    set_up(NULL);
    both_ways_and_both_endpoints(NULL);
    a_neighbour_that_changes_is_followed(NULL);
    what_the_link_does_not_take_is_refused(NULL);
    tear_down(NULL);
    family = &ipv4;
    set_up(NULL);
}

static void the_same_over_ipv6(void **state)
{
    (void)state;
    over(&ipv6);
}

static void the_same_over_addresses_of_the_link(void **state)
{
    (void)state;
    for (unsigned side = 0; side < 2; side++)
        support_netns_do(side, "ip addr add fe80::%u/64 dev wire nodad", side + 1);
    over(&link_local);
    for (unsigned side = 0; side < 2; side++)
        support_netns_do(side, "ip addr del fe80::%u/64 dev wire", side + 1);
}

static void a_link_that_goes_and_comes(void **state)
{
    (void)state;
    assert_true(passes(0, 1, 8, true));
    CHANGE(0, "ip link set wire down");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(send_to(0, 1, "x", 1), RNL_SOCKET_UNREACHABLE); /* as the kernel says */
    }
    assert_true(facts(0).works);
    CHANGE(0, "ip link set wire up");
    assert_true(passes(0, 1, 8, true));
}

/* Another way to the same address, not through the interface: the kernel's, from then on. */
static void another_route_is_taken(void **state)
{
    (void)state;
    assert_true(passes(0, 1, 8, true));
    CHANGE(0, "ip link add other type veth peer name end && ip link set other up && ip link set end up && "
              "ip route add 10.77.0.2/32 dev other");
    const uint64_t before = facts(0).frames.sent;
    (void)send_to(0, 1, "x", 1);
    assert_int_equal(facts(0).frames.sent, before);
    test_sleep_ms(110);
    (void)send_to(0, 1, "x", 1);
    assert_true(shows("AF_XDP: 10.77.0.2 port %u goes by the kernel: the route to it leads through another interface",
                      at[1].port));
    CHANGE(0, "ip link del other");
    assert_true(passes(0, 1, 8, true));
    test_sleep_ms(110);
    (void)send_to(0, 1, "x", 1);
    assert_false(shows("AF_XDP: 10.77.0.2 port %u goes by the kernel: the route to it leads through another interface",
                       at[1].port));
    assert_true(comes(1, PATIENCE_MS));
}

/* More destinations by the kernel than there is room for: all are counted, and where the others go, too. */
static void of_many_destinations_all_are_counted(void **state)
{
    (void)state;
    static struct rnl_xdp_route route[RNL_XDP_ROUTES];
    const struct rnl_xdp_routes r = {.route = route};
    const struct rnl_xdp_facts f = {.works = 1, .mode = RNL_XDP_GENERIC, .interface = 1, .queue = 9};
    struct rnl_notes *notes = NULL;
    for (uint32_t i = 0; i < RNL_XDP_ROUTES; i++)
        route[i] = (struct rnl_xdp_route){
            .used = i > 3, .to = at[1], .why = i % 4 ? "the route to it leads through another interface" : NULL};
    rnl_xdp_show(&notes, &f, &r);
    assert_true(shows("AF_XDP: queue 9 of lo, generic: rings to 255 addresses, the kernel to 765"));
    rnl_notes_free(notes);
}

static struct rnl_xdp_area *map_area(int side)
{
    void *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, rnl_xdp_queue_memory(queue[side]), 0);
    assert_true(m != MAP_FAILED);
    return m;
}

/* A process that died with the lock is forgotten; one that keeps chunks is left alone with the queue. */
static void another_endpoint_does_harm(void **state)
{
    struct rnl_xdp_area *a = map_area(1);
    (void)state;
    assert_true(passes(1, 0, 8, true));
    atomic_store(&a->lock, 2 | 1u << 7);
    chunks_come_back(NULL);
    for (int i = 0; i < 2 * RNL_XDP_OUT; i++)
        atomic_store(&a->under_way[i], 1);
    uint64_t until = test_now_ns() + PATIENCE_MS * 1000000ull;
    while (facts(1).works && test_now_ns() < until)
        (void)send_to(1, 0, "x", 1);
    assert_false(facts(1).works);
    assert_string_equal(facts(1).why, "frames to send were not taken for 200 ms");
    assert_true(shows("AF_XDP: all datagrams go by the kernel: frames to send were not taken for 200 ms"));
    assert_true(passes(1, 0, 8, false)); /* as well as ever */
    assert_true(passes(0, 1, 8, true));  /* to the kernel's socket there */
    memset(a, 0xff, sizeof *a);
    /* Neither who opened the queue nor who would join it believes a word of that. */
    assert_int_equal(rnl_xdp_queue_mode(queue[1]), RNL_XDP_GENERIC);
    struct rnl_socket *late = open_kernel(1, 2), *joined;
    assert_int_equal(rnl_xdp_socket_new(late, -1, rnl_xdp_queue_memory(queue[1]), NULL, &joined), RNL_ERR_ARG);
    late->ops->close(late);
    assert_true(passes(0, 2, 8, true)); /* nothing there is believed */
    (void)munmap(a, 4096);
}

static void the_filter_goes(void **state)
{
    (void)state;
    assert_true(passes(0, 1, 8, true));
    rnl_xdp_queue_close(queue[1]);
    queue[1] = NULL;
    const uint64_t before = facts(1).frames.received;
    assert_true(passes(0, 1, 8, true));
    assert_int_equal(facts(1).frames.received, before);
    assert_true(facts(1).received_kernel > 0);
}

/* ---- frames of strangers ---- */

static int open_wire(uint8_t mac[6])
{
    struct ifreq r = {.ifr_name = SUPPORT_NETNS_WIRE};
    support_netns_enter(1);
    const int there = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(ioctl(there, SIOCGIFHWADDR, &r), 0);
    memcpy(mac, r.ifr_hwaddr.sa_data, 6);
    close(there);
    support_netns_enter(0);
    const struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(SUPPORT_NETNS_WIRE)};
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* The ports are known: of 32 pairs one has a frame below whose wrong bytes make up for each other in its sum, and
 * which arrives, as it has to. These have none. */
static int set_up_strangers(void **state)
{
    port_next = 5000;
    set_up(state);
    return port_next = 0;
}

/* Whoever is on the wire writes frames to our port: whole ones arrive, and of those with one to three wrong bytes none
 * does, by the rings or by the kernel. Most of them pass the filter, which looks at addresses and ports only. */
static void frames_of_strangers(void **state)
{
    enum { FRAMES = 4000, BYTES = 64 };
    uint8_t mac[6], frame[256], bad[256];
    uint32_t random = 12345;
    struct rnl_xdp_head head;
    struct rnl_socket_addr stranger = at[0];
    (void)state;
    assert_true(passes(0, 1, 8, true));
    const int fd = open_wire(mac);
    stranger.port ^= 1;
    rnl_xdp_head_make(&head, mac, (const uint8_t[6]){2, 0, 0, 0, 0, 9}, RNL_XDP_TAG_NONE, &at[1], &stranger);
    memset(got, 7, BYTES);
    const uint32_t length = rnl_xdp_frame_write(&head, frame, got, BYTES, RNL_ECN_NOT);
    assert_int_equal(send(fd, frame, length, 0), length);
    assert_true(comes(1, PATIENCE_MS));
    assert_true(in.bytes == BYTES && rnl_socket_addr_equal(&in.from, &stranger));
    const uint64_t before = facts(1).frames.refused;
    for (int i = 0; i < FRAMES; i++) {
        uint32_t bytes = length;
        memcpy(bad, frame, length);
        for (uint32_t n = 0; n <= (uint32_t)i % 3; n++) {
            random = random * 1664525 + 1013904223;
            bad[RNL_XDP_ETHERNET + (random >> 8) % (length - RNL_XDP_ETHERNET)] ^= (uint8_t)(1 + (random >> 24) % 255);
        }
        if (i % 7 == 0) /* whole but for its end */
            memcpy(bad, frame, length), bytes = length - 1 - random % BYTES;
        assert_int_equal(send(fd, bad, bytes, 0), bytes);
        assert_false(comes(1, 0));
    }
    assert_false(comes(1, 50));
    assert_true(facts(1).frames.refused - before > FRAMES / 2);
    close(fd);
    assert_true(facts(1).works && passes(0, 1, 8, true) && passes(1, 0, 8, true));
}

static int without_privilege(int socket, int memory)
{
    struct rnl_socket *k = s[0], *x;
    if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 2;
    if (rnl_xdp_socket_new(k, socket, memory, NULL, &x) < 0)
        return 3;
    s[0] = x;
    for (int i = 0; i < 1000; i++) { /* the first go by the kernel, which has to find the neighbour */
        if (send_to(0, 1, "ask", 3) == RNL_SOCKET_WENT && comes(0, 100) && facts(0).frames.sent &&
            facts(0).frames.received)
            return 0;
        test_sleep_ms(5);
    }
    return 4;
}

static void a_rank_needs_no_privilege(void **state)
{
    uint16_t port;
    int status = -1;
    (void)state;
    s[0]->ops->close(s[0]);
    rnl_xdp_queue_close(queue[0]);
    queue[0] = NULL;
    s[0] = open_kernel(0, 1);
    at[0] = s[0]->self;
    port = at[0].port;
    assert_int_equal(rnl_xdp_queue_open("wire", 0, RNL_XDP_ANY, &port, 1, &queue[0]), 0);
    int socket = rnl_xdp_queue_socket(queue[0], 0);
    pid_t child = fork();
    if (child == 0)
        _exit(without_privilege(socket, rnl_xdp_queue_memory(queue[0])));
    const uint64_t until = test_now_ns() + 4 * PATIENCE_MS * 1000000ull;
    while (waitpid(child, &status, WNOHANG) == 0 && test_now_ns() < until)
        if (comes(1, 10))
            (void)send_to(1, 0, "answer", 6);
    close(socket);
    assert_int_equal(status, 0);
}

static void what_is_asked_wrongly(void **state)
{
    struct rnl_xdp_queue *q;
    struct rnl_socket *x;
    const uint16_t port = 9;
    (void)state;
    support_netns_enter(0);
    assert_int_equal(rnl_xdp_queue_open("nothing", 0, RNL_XDP_ANY, &port, 1, &q), RNL_ERR_ARG);
    assert_int_equal(rnl_xdp_queue_open("lo", 0, RNL_XDP_ANY, &port, 1, &q), RNL_ERR_UNSUPPORTED);
    assert_int_equal(rnl_xdp_queue_open("wire", 0, RNL_XDP_ANY, &port, 0, &q), RNL_ERR_ARG);
    assert_int_equal(rnl_xdp_queue_open("wire", 0, RNL_XDP_GENERIC, &port, 1, &q), RNL_ERR_SYSTEM); /* it is in use */
    assert_non_null(strstr(rnl_last_error()->text, "is in use"));
    struct rnl_socket *k = open_kernel(0, 1);
    assert_int_equal(rnl_xdp_socket_new(k, 0, rnl_xdp_queue_memory(queue[0]), NULL, &x), RNL_ERR_ARG);
    k->ops->close(k);
}

static void the_interface_is_removed(void **state)
{
    (void)state;
    assert_true(passes(0, 1, 8, true));
    CHANGE(0, "ip link del wire");
    uint64_t until = test_now_ns() + PATIENCE_MS * 1000000ull;
    while (facts(0).works && test_now_ns() < until) {
        assert_int_equal(send_to(0, 1, "x", 1), RNL_SOCKET_UNREACHABLE);
        test_sleep_ms(2);
    }
    assert_false(facts(0).works);
    assert_string_equal(facts(0).why, "the interface is gone");
    assert_true(shows("AF_XDP: all datagrams go by the kernel: the interface is gone"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(both_ways_and_both_endpoints),
        TEST(chunks_come_back),
        TEST(other_traffic_is_the_kernels),
        TEST(a_neighbour_that_changes_is_followed),
        TEST(what_the_link_does_not_take_is_refused),
        TEST(the_same_over_ipv6),
        TEST(the_same_over_addresses_of_the_link),
        TEST(a_link_that_goes_and_comes),
        TEST(another_route_is_taken),
        TEST(of_many_destinations_all_are_counted),
        TEST(another_endpoint_does_harm),
        TEST(the_filter_goes),
        cmocka_unit_test_setup_teardown(frames_of_strangers, set_up_strangers, tear_down),
        TEST(a_rank_needs_no_privilege),
        TEST(what_is_asked_wrongly),
        TEST(the_interface_is_removed), /* the last: it does not come back */
    };
    const char *why = support_netns_make();
    if (!why)
        why = support_netns_no_xdp();
    if (why) {
        printf("%s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
