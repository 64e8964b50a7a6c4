/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kept.h - a message the program keeps: a private copy whose units the peer does not get back until it is freed. */
#ifndef RNL_STREAM_KEPT_H
#define RNL_STREAM_KEPT_H

#include "endpoint/endpoint.h"

struct rnl_kept {
    struct rnl_endpoint *ep;
    struct rnl_conn *conn;
    size_t bytes;
    uint64_t units;
    unsigned char data[];
};

#endif
