/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.c - one group of all processes (runnel/group.h), whose messages go to ports. */
#include "api/panda/session.h"

int pan_group_register_port(pan_group_handler *h)
{
    struct rnl_panda *p = rnl_pan_enter("pan_group_register_port");
    if (!p)
        return rnl_last_error()->status;
    int port = p->started                  ? rnl_fail(RNL_ERR_CONTEXT, "ports are registered before pan_start")
               : p->ports == PAN_PORTS_MAX ? rnl_fail(RNL_ERR_TOO_LONG, "there are %d ports already", PAN_PORTS_MAX)
                                           : (int)p->ports;
    if (port >= 0)
        p->port[p->ports++] = h;
    rnl_pan_unlock(p);
    return port;
}

static void deliver(rnl_group *g, const struct rnl_group_message *in, void *ctx)
{
    struct rnl_panda *p = ctx;
    struct rnl_pan_group_head head;
    struct pan_msg *m;
    (void)g;
    if (RNL_UNLIKELY(in->n < sizeof head))
        return;
    memcpy(&head, in->buf, sizeof head);
    if (RNL_UNLIKELY(head.port >= p->ports || head.psize < sizeof head || head.psize > RNL_PAN_PROTO_MAX ||
                     head.psize > in->n || !(m = rnl_pan_msg_new(p))))
        return;
    rnl_pan_copy(m->proto, in->buf, head.psize);
    m->kind = RNL_PAN_OF_GROUP;
    m->group = p->port[head.port];
    m->sender = in->sender;
    m->at = (const unsigned char *)in->buf + head.psize;
    m->left = in->n - head.psize;
    p->count[RNL_PAN_DELIVERED]++;
    rnl_pan_upcall(p, m);
}

int rnl_pan_open_group(struct rnl_panda *p)
{
    const struct rnl_group_options opt = {
        .size = sizeof opt, .handler = RNL_PAN_GROUP, .budget = 16 << 20, .deliver = deliver, .ctx = p};
    return rnl_group_open(p->ep, &opt, &p->group);
}

int pan_group_send(int port, const pan_iovec_t *iov, int n, void *proto, size_t psize)
{
    struct rnl_panda *p = rnl_pan_enter("pan_group_send");
    if (RNL_UNLIKELY(!p))
        return rnl_last_error()->status;
    int64_t bytes = rnl_pan_check(iov, n, proto, psize, RNL_PAN_GROUP_OFFSET);
    int status = bytes < 0 ? (int)bytes : 0;
    if (status == 0 && (port < 0 || (uint32_t)port >= p->ports || !p->group))
        status =
            rnl_fail(RNL_ERR_ARG, "port %d is not one of the %u that were registered before pan_start", port, p->ports);
    if (status == 0) {
        const struct rnl_pan_group_head head = {.port = (uint32_t)port, .psize = (uint32_t)psize};
        struct rnl_buffer pieces[PAN_PIECES_MAX + 1];
        memcpy(proto, &head, sizeof head);
        pieces[0] = (struct rnl_buffer){proto, psize};
        for (int i = 0; i < n; i++)
            pieces[i + 1] = (struct rnl_buffer){iov[i].data, iov[i].len};
        p->count[RNL_PAN_SENT]++;
        do /* a wake is for a thread that waits for something else */
            status = rnl_group_send(p->group, pieces, (unsigned)n + 1, 0);
        while (RNL_UNLIKELY(status == RNL_INTERRUPTED));
    }
    rnl_pan_unlock(p);
    return status;
}
