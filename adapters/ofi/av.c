/* SPDX-License-Identifier: BSD-3-Clause
 *
 * av.c - address vectors: tables of peers and their endpoints. An address is an index, for FI_AV_MAP, too. */
#include "ofi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rnl_ofi_av *av_of(struct fid_av *fid)
{
    return (struct rnl_ofi_av *)(void *)fid;
}

/* The first address of a source is the one that is told. */
static int know_source(struct rnl_ofi_av *av, uint64_t source, fi_addr_t address)
{
    if (rnl_ofi_av_source(av, source) != FI_ADDR_NOTAVAIL)
        return 0;
    struct rnl_ofi_source *s = calloc(1, sizeof *s);
    if (!s)
        return -FI_ENOMEM;
    s->source = source;
    s->address = address;
    HASH_ADD(hh, av->sources, source, sizeof s->source, s);
    if (rnl_ofi_av_source(av, source) == address)
        return 0;
    free(s);
    return -FI_ENOMEM;
}

static int insert(struct rnl_ofi_av *av, const struct rnl_ofi_name *name, fi_addr_t *out)
{
    char text[RNL_ADDRESS_BYTES];
    if (!rnl_ofi_name_unpack(name, text))
        return -FI_EINVAL;
    struct rnl_ofi_peer *p = rnl_ofi_peer_find(av->domain, name);
    if (!p)
        return -FI_ENOMEM;
    if (av->count == av->room) {
        size_t room = av->room ? 2 * av->room : 16;
        struct rnl_ofi_av_entry *more = realloc(av->entry, room * sizeof *more);
        if (!more)
            return -FI_ENOMEM;
        av->entry = more;
        av->room = room;
    }
    int error = know_source(av, rnl_ofi_source_of(p, name->ep), av->count);
    if (error)
        return error;
    *out = av->count;
    av->entry[av->count++] = (struct rnl_ofi_av_entry){.peer = p, .ep = name->ep};
    return 0;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *out, uint64_t flags, void *context)
{
    struct rnl_ofi_av *av = av_of(fid);
    const unsigned char *at = addr;
    int good = 0;
    if (flags & ~(uint64_t)(FI_MORE | FI_SYNC_ERR))
        return -FI_ENOSYS;
    rnl_ofi_lock(av->domain);
    for (size_t i = 0; i < count; i++, at += RNL_OFI_NAME_BYTES) {
        struct rnl_ofi_name name;
        fi_addr_t address = FI_ADDR_NOTAVAIL;
        memcpy(&name, at, sizeof name);
        int error = insert(av, &name, &address);
        if (out)
            out[i] = address;
        if (flags & FI_SYNC_ERR && context)
            ((int *)context)[i] = -error;
        good += error == 0;
    }
    rnl_ofi_unlock(av->domain);
    return good;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *out, uint64_t flags,
                        void *context)
{
    (void)fid, (void)node, (void)service, (void)out, (void)flags, (void)context;
    return -FI_ENOSYS;
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service, size_t services,
                        fi_addr_t *out, uint64_t flags, void *context)
{
    (void)fid, (void)node, (void)nodes, (void)service, (void)services, (void)out, (void)flags, (void)context;
    return -FI_ENOSYS;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addresses, size_t count, uint64_t flags)
{
    struct rnl_ofi_av *av = av_of(fid);
    int status = flags ? -FI_EINVAL : 0;
    rnl_ofi_lock(av->domain);
    for (size_t i = 0; i < count && status == 0; i++) {
        if (addresses[i] >= av->count || !av->entry[addresses[i]].peer) {
            status = -FI_EINVAL;
            break;
        }
        struct rnl_ofi_av_entry *e = &av->entry[addresses[i]];
        uint64_t source = rnl_ofi_source_of(e->peer, e->ep);
        struct rnl_ofi_source *s;
        e->peer = NULL;
        HASH_FIND(hh, av->sources, &source, sizeof source, s);
        if (s && s->address == addresses[i]) {
            HASH_DELETE(hh, av->sources, s);
            free(s);
        }
    }
    rnl_ofi_unlock(av->domain);
    return status;
}

static int av_lookup(struct fid_av *fid, fi_addr_t address, void *out, size_t *len)
{
    struct rnl_ofi_av *av = av_of(fid);
    rnl_ofi_lock(av->domain);
    bool known = address < av->count && av->entry[address].peer;
    if (known) {
        struct rnl_ofi_name name = av->entry[address].peer->name;
        name.ep = (uint8_t)av->entry[address].ep;
        memcpy(out, &name, *len < sizeof name ? *len : sizeof name);
        *len = sizeof name;
    }
    rnl_ofi_unlock(av->domain);
    return known ? 0 : -FI_EINVAL;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
    (void)fid;
    char text[RNL_ADDRESS_BYTES];
    struct rnl_ofi_name name;
    memcpy(&name, addr, sizeof name);
    if (!rnl_ofi_name_unpack(&name, text))
        strcpy(text, "?");
    char *secret = strrchr(text, '.'); /* its last part is what admits */
    if (secret)
        *secret = '\0';
    int n = snprintf(buf, *len, "%s/%u", text, name.ep);
    *len = (size_t)n + 1;
    return buf;
}

static struct fi_ops_av av_ops = {
    .size = sizeof(struct fi_ops_av),
    .insert = av_insert,
    .insertsvc = av_insertsvc,
    .insertsym = av_insertsym,
    .remove = av_remove,
    .lookup = av_lookup,
    .straddr = av_straddr,
};

static int av_close(struct fid *fid)
{
    struct rnl_ofi_av *av = (struct rnl_ofi_av *)(void *)fid;
    struct rnl_ofi_domain *d = av->domain;
    struct rnl_ofi_source *s, *next;
    rnl_ofi_lock(d);
    bool busy = av->users != 0;
    if (!busy)
        d->users--;
    rnl_ofi_unlock(d);
    if (busy)
        return -FI_EBUSY;
    HASH_ITER(hh, av->sources, s, next)
    {
        HASH_DELETE(hh, av->sources, s);
        free(s);
    }
    free(av->entry);
    free(av);
    return 0;
}

static int av_bind(struct fid *fid, struct fid *eq, uint64_t flags)
{
    (void)fid, (void)eq, (void)flags;
    return -FI_ENOSYS; /* inserting is never asynchronous */
}

static struct fi_ops av_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = av_close,
    .bind = av_bind,
    .control = rnl_ofi_no_control,
    .ops_open = rnl_ofi_no_ops_open,
};

int rnl_ofi_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
    struct rnl_ofi_domain *d = (struct rnl_ofi_domain *)(void *)fid;
    if (!attr || attr->name || attr->flags || attr->rx_ctx_bits) /* a named vector is shared by processes */
        return attr ? -FI_ENOSYS : -FI_EINVAL;
    struct rnl_ofi_av *av = calloc(1, sizeof *av);
    if (!av)
        return -FI_ENOMEM;
    av->fid.fid.fclass = FI_CLASS_AV;
    av->fid.fid.context = context;
    av->fid.fid.ops = &av_fid_ops;
    av->fid.ops = &av_ops;
    av->domain = d;
    if (attr->type == FI_AV_UNSPEC)
        attr->type = FI_AV_TABLE;
    rnl_ofi_lock(d);
    d->users++;
    rnl_ofi_unlock(d);
    *out = &av->fid;
    return 0;
}
