/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port.c - messages to ports of one process, which nobody answers. */
#include "api/panda/session.h"

#include "runnel/adapter.h"

int pan_mp_register_port(pan_mp_handler *h)
{
    struct rnl_panda *p = rnl_pan_enter("pan_mp_register_port");
    if (!p)
        return rnl_last_error()->status;
    int port = p->started ? rnl_fail(RNL_ERR_CONTEXT, "ports are registered before pan_start")
               : p->own_ports == PAN_PORTS_MAX
                   ? rnl_fail(RNL_ERR_TOO_LONG, "there are %d ports of this process already", PAN_PORTS_MAX)
                   : (int)p->own_ports;
    if (port >= 0)
        p->own_port[p->own_ports++] = h;
    rnl_pan_unlock(p);
    return port;
}

int pan_mp_send(int dest, int port, const pan_iovec_t *iov, int n, void *proto, size_t psize)
{
    struct rnl_panda *p = rnl_pan_enter("pan_mp_send");
    if (RNL_UNLIKELY(!p))
        return rnl_last_error()->status;
    int64_t bytes = rnl_pan_check(iov, n, proto, psize, RNL_PAN_GROUP_OFFSET);
    int status = bytes < 0 ? (int)bytes : 0;
    if (status == 0 && (port < 0 || (uint32_t)port >= p->own_ports))
        status = rnl_fail(RNL_ERR_ARG, "port %d is not one of the %u that were registered before pan_start", port,
                          p->own_ports);
    if (status == 0) {
        const struct rnl_pan_group_head head = {.port = (uint32_t)port, .psize = (uint32_t)psize};
        memcpy(proto, &head, sizeof head);
        status = rnl_pan_send(p, (uint32_t)dest, RNL_PAN_PORT, proto, psize, iov, n, (size_t)bytes);
    }
    rnl_pan_unlock(p);
    return status;
}

int rnl_pan_take_port(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_panda *p = ctx;
    struct rnl_pan_group_head head;
    struct pan_msg *m = rnl_pan_msg_new(p);
    bool exact;
    const size_t n = rnl_stream_length(s, &exact);
    if (RNL_UNLIKELY(!m))
        return RNL_DONE;
    bool good = n >= sizeof head && rnl_pan_take(s, &head, sizeof head) == 0 && head.port < p->own_ports &&
                head.psize >= sizeof head && head.psize <= RNL_PAN_PROTO_MAX && head.psize <= n &&
                (head.psize == sizeof head || rnl_pan_take(s, m->proto + sizeof head, head.psize - sizeof head) == 0);
    if (RNL_UNLIKELY(!good)) {
        m->in_upcall = 0;
        pan_msg_clear(m);
        return RNL_DONE;
    }
    memcpy(m->proto, &head, sizeof head);
    m->kind = RNL_PAN_OF_PORT;
    m->group = p->own_port[head.port];
    m->sender = peer;
    m->stream = s;
    m->left = n - head.psize;
    rnl_pan_upcall(p, m);
    return RNL_DONE;
}
