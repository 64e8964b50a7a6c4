/* SPDX-License-Identifier: BSD-3-Clause
 *
 * export.c - VMMC's receive buffers: memory for them, export, notifications, unexport. */
#include "api/vmmc/session.h"

#include <limits.h>
#include <stdlib.h>

/* ---- memory ---- */

int VMMC_Alloc(size_t nbytes, void **at)
{
    size_t page = rnl_vmmc_page();
    int status = rnl_vmmc_enter("VMMC_Alloc");
    if (status < 0)
        return status;
    if (nbytes == 0 || nbytes > SIZE_MAX / 2)
        return rnl_fail(RNL_ERR_ARG, "VMMC_Alloc of %zu bytes", nbytes);
    struct rnl_vmmc_area *a = calloc(1, sizeof *a);
    void *memory;
    if (!a)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for what is known of a receive buffer");
    a->bytes = (nbytes + page - 1) / page * page;
    status = rnl_window_alloc(rnl_vmmc.ep, a->bytes, &memory, &a->window);
    if (status < 0) {
        free(a);
        return status;
    }
    a->at = memory;
    a->next = rnl_vmmc.areas;
    rnl_vmmc.areas = a;
    *at = memory;
    return 0;
}

static bool overlaps(const struct rnl_vmmc_export *e, const unsigned char *at, size_t bytes)
{
    return (uintptr_t)at < (uintptr_t)e->at + e->bytes && (uintptr_t)e->at < (uintptr_t)at + bytes;
}

static const struct rnl_vmmc_export *exported_in(const void *at, size_t bytes)
{
    const struct rnl_vmmc_export *e = rnl_vmmc.exports;
    while (e && !overlaps(e, at, bytes))
        e = e->next;
    return e;
}

int VMMC_Free(void *at)
{
    int status = rnl_vmmc_enter("VMMC_Free");
    if (status < 0)
        return status;
    for (struct rnl_vmmc_area **link = &rnl_vmmc.areas, *a; (a = *link); link = &a->next) {
        if (a->at != at)
            continue;
        const struct rnl_vmmc_export *e = exported_in(at, a->bytes);
        if (e)
            return rnl_fail(RNL_BUSY, "it is exported as receive buffer %u; unexport that first", e->id);
        *link = a->next;
        status = rnl_window_free(a->window);
        free(a);
        return status;
    }
    return rnl_fail(RNL_ERR_ARG, "%p is not what VMMC_Alloc returned", at);
}

/* ---- export ---- */

static void on_notify(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    const struct rnl_vmmc_export *e = ctx;
    (void)w;
    rnl_vmmc.count[RNL_VMMC_NOTIFIED]++;
    rnl_vmmc.in_handler = true;
    e->handler(e->id, e->at + offset, n, peer); /* it may unexport the buffer */
    rnl_vmmc.in_handler = false;
}

static int on_admit(void *ctx, unsigned peer)
{
    const struct rnl_vmmc_export *e = ctx;
    for (unsigned i = 0; i < e->importers; i++)
        if (e->only[i].node == peer && rnl_vmmc_is_there(peer, e->only[i].process) == 0)
            return 0;
    return -1;
}

static int check_export(const void *buf, size_t nbytes, const VMMC_ExportOptions *o)
{
    size_t page = rnl_vmmc_page();
    uintptr_t from = (uintptr_t)buf;
    if (!buf || nbytes == 0 || from % page || nbytes % page || from + nbytes < from)
        return rnl_fail(RNL_ERR_ARG,
                        "%zu bytes at %p are not whole pages of %zu bytes; what shares a page with a receive "
                        "buffer would be exported, too",
                        nbytes, buf, page);
    if (o && o->size != sizeof *o)
        return rnl_fail(RNL_ERR_ARG, "options.size is %u instead of %zu", o->size, sizeof *o);
    if (o && o->flags & ~(unsigned)(VMMC_DIRECT | VMMC_CARRIED))
        return rnl_fail(RNL_ERR_ARG, "unknown bits 0x%x in options.flags; VMMC_DIRECT and VMMC_CARRIED are those",
                        o->flags);
    if (o && o->importers && !o->only)
        return rnl_fail(RNL_ERR_ARG, "options.importers is %u and options.only is NULL", o->importers);
    const struct rnl_vmmc_export *e = exported_in(buf, nbytes);
    if (e)
        return rnl_fail(RNL_ERR_ARG, "%zu bytes at %p overlap receive buffer %u", nbytes, buf, e->id);
    return 0;
}

/* Finds or makes the window of a new export. */
static int find_window(struct rnl_vmmc_export *e, uint32_t flags)
{
    bool in_area = false;
    for (struct rnl_vmmc_area *a = rnl_vmmc.areas; a; a = a->next) {
        if (a->at == e->at && a->bytes == e->bytes) {
            e->area = a;
            e->window = a->window;
            return 0;
        }
        in_area |= e->at >= a->at && e->at < a->at + a->bytes;
    }
    int status = flags & VMMC_CARRIED || in_area ? RNL_ERR_UNSUPPORTED
                                                 : rnl_window_adopt(rnl_vmmc.ep, e->at, e->bytes, &e->window);
    if (status == RNL_ERR_UNSUPPORTED && flags & VMMC_DIRECT)
        return rnl_fail(status,
                        "this memory cannot be mapped by others: leave VMMC_DIRECT out, or export whole memory of "
                        "VMMC_Alloc");
    return status == RNL_ERR_UNSUPPORTED ? rnl_window_wrap(rnl_vmmc.ep, e->at, e->bytes, &e->window) : status;
}

int VMMC_ExportRecvBuf(void *buf, size_t nbytes, uint32_t rbufid, VMMC_MsgHandler *handler, const VMMC_ExportOptions *o)
{
    unsigned importers = o && o->only ? o->importers : 0;
    int status = rnl_vmmc_enter("VMMC_ExportRecvBuf");
    if (status < 0 || (status = check_export(buf, nbytes, o)) < 0)
        return status;
    struct rnl_vmmc_export *e = calloc(1, sizeof *e + importers * sizeof e->only[0]);
    if (!e)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for what is known of a receive buffer");
    e->id = rbufid;
    e->at = buf;
    e->bytes = nbytes;
    e->handler = handler;
    e->importers = importers;
    if (importers)
        memcpy(e->only, o->only, importers * sizeof e->only[0]);
    const struct rnl_offer offer = {.size = sizeof offer,
                                    .id = rbufid,
                                    .flags = o ? o->flags : 0,
                                    .who = o ? o->who : NULL,
                                    .admit = o && o->only ? on_admit : NULL,
                                    .notify = handler ? on_notify : NULL,
                                    .ctx = e};
    status = find_window(e, offer.flags);
    if (status == 0 && (status = rnl_window_offer(e->window, &offer)) < 0 && !e->area)
        (void)rnl_window_free(e->window);
    if (status < 0) {
        free(e);
        return status;
    }
    e->next = rnl_vmmc.exports;
    rnl_vmmc.exports = e;
    rnl_vmmc.count[RNL_VMMC_EXPORTED]++;
    return 0;
}

static struct rnl_vmmc_export **find(uint32_t id)
{
    struct rnl_vmmc_export **link = &rnl_vmmc.exports;
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

static int no_such(uint32_t id)
{
    return rnl_fail(RNL_ERR_ARG, "this process has no receive buffer %u", id);
}

int VMMC_UnexportRecvBuf(uint32_t rbufid, int64_t timeout_ns)
{
    int status = rnl_vmmc_enter("VMMC_UnexportRecvBuf");
    if (status < 0)
        return status;
    struct rnl_vmmc_export *e = *find(rbufid);
    if (!e)
        return no_such(rbufid);
    status = rnl_window_revoke(e->window, timeout_ns);
    if (status < 0) /* the buffer is still known, and the call can be made again */
        return status;
    struct rnl_vmmc_export **link = find(rbufid); /* handlers ran meanwhile, and may have exported or unexported */
    if (*link != e)
        return 0;
    *link = e->next;
    if (!e->area)
        status = rnl_window_free(e->window);
    free(e);
    return status;
}

int VMMC_UnexportRecvBufNow(uint32_t rbufid)
{
    return VMMC_UnexportRecvBuf(rbufid, 0);
}

int VMMC_Importers(uint32_t rbufid, VMMC_Importer *importers, unsigned most)
{
    int status = rnl_vmmc_enter("VMMC_Importers");
    if (status < 0)
        return status;
    const struct rnl_vmmc_export *e = *find(rbufid);
    if (!e)
        return no_such(rbufid);
    unsigned *peer = most ? calloc(most, sizeof *peer) : NULL;
    if (most && !peer)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u numbers", most);
    unsigned n = rnl_window_importers(e->window, peer, most);
    for (unsigned i = 0; i < n && i < most; i++) {
        importers[i] = (VMMC_Importer){.node = peer[i]};
        (void)!VMMC_ProcessOf(peer[i], &importers[i].process);
    }
    free(peer);
    return n > INT_MAX ? INT_MAX : (int)n;
}

/* ---- notifications ---- */

void VMMC_BlockNotifications(void)
{
    if (rnl_vmmc_enter("VMMC_BlockNotifications") == 0 && rnl_notify_block(rnl_vmmc.ep) >= 0)
        rnl_vmmc.blocked++;
}

int VMMC_UnblockNotifications(void)
{
    int status = rnl_vmmc_enter("VMMC_UnblockNotifications");
    if (status < 0)
        return status;
    if (rnl_vmmc.blocked == 0 && rnl_vmmc.in_handler)
        return rnl_fail(RNL_ERR_CONTEXT, "notifications stay blocked until the handler that runs has returned");
    if (rnl_vmmc.blocked == 0)
        return 1;
    status = rnl_notify_unblock(rnl_vmmc.ep);
    if (status < 0)
        return status;
    rnl_vmmc.blocked--;
    return rnl_vmmc.blocked == 0 && !rnl_vmmc.in_handler;
}

void rnl_vmmc_free_exports(bool windows)
{
    for (struct rnl_vmmc_export *e; (e = rnl_vmmc.exports);) {
        rnl_vmmc.exports = e->next;
        if (windows && !e->area)
            (void)rnl_window_free(e->window);
        free(e);
    }
    for (struct rnl_vmmc_area *a; (a = rnl_vmmc.areas);) {
        rnl_vmmc.areas = a->next;
        if (windows)
            (void)rnl_window_free(a->window);
        free(a);
    }
}
