/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.h - the endpoint's calls into remote/. Each takes all events that came of it before it returns (net.c). They
 * need ep->remote, unless a function says otherwise. */
#ifndef RNL_ENDPOINT_NET_H
#define RNL_ENDPOINT_NET_H

#include "endpoint/endpoint.h"
#include "remote/remote.h"

/* Takes env->datagrams into use; opt may be NULL. Returns 0 or what rnl_remote_new returns. */
int rnl_ep_net_new(struct rnl_endpoint *ep, const struct rnl_remote_options *opt);

void rnl_ep_net_receive(struct rnl_endpoint *ep);
void rnl_ep_net_send(struct rnl_endpoint *ep);
void rnl_ep_net_send_after(struct rnl_endpoint *ep);
void rnl_ep_net_send_urgent(struct rnl_endpoint *ep);
void rnl_ep_net_maintain(struct rnl_endpoint *ep);
/* Handles the result that a call of remote/ returned, and takes its events. Most results are 0. */
void rnl_ep_net_handle(struct rnl_endpoint *ep, unsigned result);
RNL_INLINE void rnl_ep_net_result(struct rnl_endpoint *ep, unsigned result)
{
    if (result)
        rnl_ep_net_handle(ep, result);
}

/* Returns true if the network should be polled in an extract that may find nothing. A poll of the network takes long
 * beside a look at the rings of this host, so it is left out where such rings exist and nothing came over the network
 * for a while. */
RNL_INLINE bool rnl_ep_net_time(struct rnl_endpoint *ep)
{
    return ep->net.due || atomic_load_explicit(ep->net.bell, memory_order_relaxed) & ep->net.bits ||
           ++ep->net.skipped > ep->net.skip;
}
/* Returns true if there is something to receive or to send. Otherwise the transport is armed and will ring the bell. */
bool rnl_ep_net_look(struct rnl_endpoint *ep, uint64_t now_ns);
/* Returns true if all connections are to peers on other hosts. ep->remote may be NULL. */
bool rnl_ep_net_all(const struct rnl_endpoint *ep);
/* Returns true if the rank is on another host. ep->remote may be NULL. */
bool rnl_ep_is_remote(struct rnl_endpoint *ep, uint32_t rank);
/* rnl_ep_is_remote, where the first peer on another host may have been introduced since: then the network is taken into
 * use, or it returns a negative status. */
int rnl_ep_net_leads(struct rnl_endpoint *ep, uint32_t rank);
/* Gives conn, to a peer on another host, its rings again if it hibernates. Returns 0 or RNL_ERR_NO_MEMORY. */
int rnl_ep_net_activate(struct rnl_endpoint *ep, struct rnl_conn *conn);

#endif
