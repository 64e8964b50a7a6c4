/* SPDX-License-Identifier: BSD-3-Clause
 *
 * absent.c - takes the place of the other files where AF_XDP is left out of the build: every socket is the kernel's. */
#include "net/socket/xdp/queue.h"
#include "net/socket/xdp/xdp.h"

#include "base/error.h"

static int absent(void)
{
    return rnl_fail(RNL_ERR_UNSUPPORTED, "this build has no AF_XDP: build it with kernel headers that know it, and "
                                         "without -Dxdp=disabled");
}

int rnl_xdp_queue_open(const char *interface, uint32_t queue, enum rnl_xdp_mode mode, const uint16_t *ports,
                       uint32_t endpoints, struct rnl_xdp_queue **out)
{
    (void)interface;
    (void)queue;
    (void)mode;
    (void)ports;
    (void)endpoints;
    (void)out;
    return absent();
}

int rnl_xdp_queue_allowed(void)
{
    return absent();
}

int rnl_xdp_interface_to(const uint8_t ip[16], char name[16])
{
    (void)ip;
    (void)name;
    return absent();
}

int rnl_xdp_queue_socket(struct rnl_xdp_queue *q, uint32_t endpoint)
{
    (void)q;
    (void)endpoint;
    return absent();
}

int rnl_xdp_queue_memory(const struct rnl_xdp_queue *q)
{
    (void)q;
    return absent();
}

uint32_t rnl_xdp_queue_others(const struct rnl_xdp_queue *q)
{
    (void)q;
    return 0;
}

enum rnl_xdp_mode rnl_xdp_queue_mode(const struct rnl_xdp_queue *q)
{
    (void)q;
    return RNL_XDP_ANY;
}

const char *rnl_xdp_mode_text(enum rnl_xdp_mode mode)
{
    (void)mode;
    return "absent";
}

void rnl_xdp_queue_close(struct rnl_xdp_queue *q)
{
    (void)q;
}

int rnl_xdp_socket_new(struct rnl_socket *kernel, int socket, int memory, const struct rnl_xdp_options *options,
                       struct rnl_socket **out)
{
    (void)kernel;
    (void)socket;
    (void)memory;
    (void)options;
    (void)out;
    return absent();
}

bool rnl_xdp_socket_is(const struct rnl_socket *s)
{
    (void)s;
    return false;
}

void rnl_xdp_socket_facts(const struct rnl_socket *s, struct rnl_xdp_facts *out)
{
    (void)s;
    *out = (struct rnl_xdp_facts){.works = 0};
}
