/* SPDX-License-Identifier: BSD-3-Clause
 *
 * filter.c - the program, instruction by instruction, and its maps. It is short and fixed but for five constants, so
 * neither a compiler for it nor a library that loads compiled programs is needed. */
#include "net/socket/xdp/filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

enum { R0, R1, R2, R3, R4, R5, CONTEXT, FRAME, END, HEADERS, STACK }; /* registers, the first ones of any use */
enum { INSNS = 96, JUMPS = 24, LOAD_TRIES = 8, KEY = -24 };           /* KEY: of the stack */

struct place_key { /* as the program composes it */
    uint8_t ip[16];
    uint16_t port; /* in the order of the wire */
    uint16_t zero;
    uint32_t queue;
};
_Static_assert(sizeof(struct place_key) == 24, "the program writes all of it");

struct code {
    struct bpf_insn insn[INSNS];
    int jump[JUMPS]; /* those that leave the frame to the kernel */
    int n, jumps;
};

static int bpf(int what, union bpf_attr *a)
{
    return (int)syscall(SYS_bpf, what, a, sizeof *a);
}

static void add(struct code *c, int op, int to, int from, int offset, int32_t value)
{
    c->insn[c->n++] = (struct bpf_insn){.code = (uint8_t)op,
                                        .dst_reg = (uint8_t)(to & 15),
                                        .src_reg = (uint8_t)(from & 15),
                                        .off = (int16_t)offset,
                                        .imm = value};
}

static void copy(struct code *c, int to, int from)
{
    add(c, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static void load(struct code *c, int size, int to, int from, int offset)
{
    add(c, BPF_LDX | BPF_MEM | size, to, from, offset, 0);
}

/* The frame is the kernel's where the condition holds. */
static void pass_if(struct code *c, int condition, int left, int right, int32_t value)
{
    c->jump[c->jumps++] = c->n;
    add(c, condition, left, right, 0, value);
}

/* The frame is the kernel's unless `bytes` lie behind `from`. */
static void need(struct code *c, int from, int bytes)
{
    copy(c, R2, from);
    add(c, BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, bytes);
    pass_if(c, BPF_JMP | BPF_JGT | BPF_X, R2, END, 0);
}

static void pass_unless(struct code *c, int size, int from, int offset, int32_t value)
{
    load(c, size, R3, from, offset);
    pass_if(c, BPF_JMP32 | BPF_JNE | BPF_K, R3, 0, value);
}

/* Composes the key of an IPv4 or IPv6 datagram, whose port ends up in R5. HEADERS is 14 bytes before the IP header. */
static void ipv4(struct code *c)
{
    pass_unless(c, BPF_B, HEADERS, 14, 0x45); /* no options */
    load(c, BPF_H, R3, HEADERS, 20);
    add(c, BPF_ALU64 | BPF_AND | BPF_K, R3, 0, 0, htons(0x3fff));
    pass_if(c, BPF_JMP32 | BPF_JNE | BPF_K, R3, 0, 0); /* a fragment */
    pass_unless(c, BPF_B, HEADERS, 23, 17);
    add(c, BPF_ST | BPF_MEM | BPF_W, STACK, 0, KEY, 0);
    add(c, BPF_ST | BPF_MEM | BPF_W, STACK, 0, KEY + 4, 0);
    add(c, BPF_ST | BPF_MEM | BPF_W, STACK, 0, KEY + 8, (int32_t)htonl(0xffff));
    load(c, BPF_W, R3, HEADERS, 30);
    add(c, BPF_STX | BPF_MEM | BPF_W, STACK, R3, KEY + 12, 0);
    load(c, BPF_H, R5, HEADERS, 36);
}

static void ipv6(struct code *c)
{
    need(c, HEADERS, 14 + 40 + 8);
    pass_unless(c, BPF_B, HEADERS, 20, 17);
    for (int i = 0; i < 16; i += 4) {
        load(c, BPF_W, R3, HEADERS, 38 + i);
        add(c, BPF_STX | BPF_MEM | BPF_W, STACK, R3, KEY + i, 0);
    }
    load(c, BPF_H, R5, HEADERS, 56);
}

static void load_map(struct code *c, int to, int map)
{
    add(c, BPF_LD | BPF_IMM | BPF_DW, to, BPF_PSEUDO_MAP_FD, 0, map);
    add(c, 0, 0, 0, 0, 0);
}

static void assemble(struct code *c, const struct rnl_xdp_filter *f, const uint8_t mac[6], uint32_t frame_most)
{
    int32_t mac4;
    uint16_t mac2;
    memcpy(&mac4, mac, 4);
    memcpy(&mac2, mac + 4, 2);
    copy(c, CONTEXT, R1);
    load(c, BPF_W, FRAME, CONTEXT, offsetof(struct xdp_md, data));
    load(c, BPF_W, END, CONTEXT, offsetof(struct xdp_md, data_end));
    copy(c, R2, END);
    add(c, BPF_ALU64 | BPF_SUB | BPF_X, R2, FRAME, 0, 0);
    pass_if(c, BPF_JMP | BPF_JGT | BPF_K, R2, 0, (int32_t)frame_most);
    need(c, FRAME, 14 + 20 + 8);
    pass_unless(c, BPF_W, FRAME, 0, mac4);
    pass_unless(c, BPF_H, FRAME, 4, mac2);
    copy(c, HEADERS, FRAME);
    load(c, BPF_H, R4, FRAME, 12);
    int untagged = c->n;
    add(c, BPF_JMP32 | BPF_JNE | BPF_K, R4, 0, 0, htons(0x8100));
    need(c, FRAME, 18 + 20 + 8);
    load(c, BPF_H, R4, FRAME, 16);
    add(c, BPF_ALU64 | BPF_ADD | BPF_K, HEADERS, 0, 0, 4);
    c->insn[untagged].off = (int16_t)(c->n - untagged - 1);
    int not_ipv4 = c->n;
    add(c, BPF_JMP32 | BPF_JNE | BPF_K, R4, 0, 0, htons(0x0800));
    ipv4(c);
    int have_key = c->n;
    add(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
    c->insn[not_ipv4].off = (int16_t)(c->n - not_ipv4 - 1);
    pass_if(c, BPF_JMP32 | BPF_JNE | BPF_K, R4, 0, htons(0x86dd));
    ipv6(c);
    c->insn[have_key].off = (int16_t)(c->n - have_key - 1);
    add(c, BPF_ST | BPF_MEM | BPF_W, STACK, 0, KEY + 16, 0);
    add(c, BPF_STX | BPF_MEM | BPF_H, STACK, R5, KEY + 16, 0);
    load(c, BPF_W, R3, CONTEXT, offsetof(struct xdp_md, rx_queue_index));
    add(c, BPF_STX | BPF_MEM | BPF_W, STACK, R3, KEY + 20, 0);
    load_map(c, R1, f->places);
    copy(c, R2, STACK);
    add(c, BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, KEY);
    add(c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem);
    pass_if(c, BPF_JMP | BPF_JEQ | BPF_K, R0, 0, 0);
    load(c, BPF_W, R2, R0, 0);
    load_map(c, R1, f->sockets);
    add(c, BPF_ALU64 | BPF_MOV | BPF_K, R3, 0, 0, XDP_PASS); /* where that socket is gone */
    add(c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map);
    add(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    for (int i = 0; i < c->jumps; i++)
        c->insn[c->jump[i]].off = (int16_t)(c->n - c->jump[i] - 1);
    add(c, BPF_ALU64 | BPF_MOV | BPF_K, R0, 0, 0, XDP_PASS);
    add(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static int make_map(uint32_t type, uint32_t key, uint32_t value, uint32_t entries)
{
    union bpf_attr a = {.map_type = type, .key_size = key, .value_size = value, .max_entries = entries};
    return bpf(BPF_MAP_CREATE, &a);
}

static int refused(struct rnl_xdp_filter *f, const char *what)
{
    int error = errno;
    rnl_xdp_filter_end(f);
    return rnl_fail_errno(RNL_ERR_SYSTEM, error,
                          "%s, which redirects frames to AF_XDP, cannot be made: it takes CAP_BPF and CAP_NET_ADMIN",
                          what);
}

int rnl_xdp_filter_make(struct rnl_xdp_filter *f, uint32_t sockets, uint32_t addresses, const uint8_t mac[6],
                        uint32_t frame_most)
{
    struct code c = {.n = 0};
    *f = (struct rnl_xdp_filter){.program = -1, .link = -1, .sockets = -1, .places = -1};
    f->sockets = make_map(BPF_MAP_TYPE_XSKMAP, sizeof(uint32_t), sizeof(uint32_t), sockets);
    f->places = f->sockets < 0
                    ? -1
                    : make_map(BPF_MAP_TYPE_HASH, sizeof(struct place_key), sizeof(uint32_t), addresses * sockets);
    if (f->places < 0)
        return refused(f, "a map of the filter");
    assemble(&c, f, mac, frame_most);
    union bpf_attr a = {.prog_type = BPF_PROG_TYPE_XDP,
                        .insns = (uintptr_t)c.insn,
                        .insn_cnt = (uint32_t)c.n,
                        .license = (uintptr_t) "BSD",
                        .prog_name = "runnel"};
    /* A signal that arrives while the kernel checks the program ends the check. */
    for (int tries = 0; tries < LOAD_TRIES; tries++) {
        f->program = bpf(BPF_PROG_LOAD, &a);
        if (f->program >= 0 || errno != EAGAIN)
            break;
    }
    return f->program < 0 ? refused(f, "the filter") : 0;
}

int rnl_xdp_filter_attach(struct rnl_xdp_filter *f, uint32_t interface, bool generic)
{
    union bpf_attr a;
    memset(&a, 0, sizeof a);
    a.link_create.prog_fd = (uint32_t)f->program;
    a.link_create.target_ifindex = interface;
    a.link_create.attach_type = BPF_XDP;
    a.link_create.flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
    f->link = bpf(BPF_LINK_CREATE, &a);
    return f->link < 0 ? -errno : 0;
}

static int update(int map, const void *key, const void *value, const char *what)
{
    union bpf_attr a = {.map_fd = (uint32_t)map, .key = (uintptr_t)key, .value = (uintptr_t)value};
    return bpf(BPF_MAP_UPDATE_ELEM, &a) == 0
               ? 0
               : rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the filter does not take %s", what);
}

int rnl_xdp_filter_add(const struct rnl_xdp_filter *f, uint32_t place, int socket)
{
    uint32_t fd = (uint32_t)socket;
    return update(f->sockets, &place, &fd, "a socket");
}

int rnl_xdp_filter_address(const struct rnl_xdp_filter *f, const uint8_t ip[16], uint16_t port, uint32_t queue,
                           uint32_t place)
{
    struct place_key key = {.port = htons(port), .queue = queue};
    memcpy(key.ip, ip, sizeof key.ip);
    return update(f->places, &key, &place, "an address");
}

void rnl_xdp_filter_end(struct rnl_xdp_filter *f)
{
    for (int *fd = (int[]){f->link, f->program, f->sockets, f->places, -2}; *fd != -2; fd++)
        if (*fd >= 0)
            close(*fd);
    *f = (struct rnl_xdp_filter){.program = -1, .link = -1, .sockets = -1, .places = -1};
}
