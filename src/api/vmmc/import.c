/* SPDX-License-Identifier: BSD-3-Clause
 *
 * import.c - VMMC's proxy addresses and messages. An import has a range of addresses of its own, which are reserved and
 * not mapped; a page more, so that the end of one import never is the beginning of another. */
#include "api/vmmc/session.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- ranges of addresses ---- */

/* The first import that begins behind `at`. */
static size_t behind(uintptr_t at)
{
    size_t low = 0, high = rnl_vmmc.imports;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rnl_vmmc.import[middle].proxy <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int make_room(void)
{
    if (rnl_vmmc.imports < rnl_vmmc.room)
        return 0;
    size_t room = rnl_vmmc.room ? 2 * rnl_vmmc.room : 16;
    struct rnl_vmmc_import *more = realloc(rnl_vmmc.import, room * sizeof *more);
    if (!more)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %zu imports", room);
    rnl_vmmc.import = more;
    rnl_vmmc.room = room;
    return 0;
}

/* Gives an import that is there its addresses; drops it if that fails. */
static int add(rnl_import *import, size_t bytes, VMMC_NodeID node, VMMC_Process process, void **proxy)
{
    size_t page = rnl_vmmc_page();
    struct rnl_vmmc_import new = {.bytes = bytes, .mapped = (bytes + page - 1) / page * page + page, .import = import};
    int status = rnl_vmmc_is_there(node, process);
    if (status == 0)
        status = make_room();
    void *at =
        status == 0 ? mmap(NULL, new.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : NULL;
    if (at == MAP_FAILED)
        status = rnl_fail(RNL_ERR_NO_MEMORY, "no range of %zu addresses for an import", new.mapped);
    if (status < 0) {
        (void)rnl_import_drop(import);
        return status;
    }
    new.proxy = (uintptr_t)at;
    size_t place = behind(new.proxy);
    memmove(rnl_vmmc.import + place + 1, rnl_vmmc.import + place, (rnl_vmmc.imports - place) * sizeof new);
    rnl_vmmc.import[place] = new;
    rnl_vmmc.imports++;
    rnl_vmmc.count[RNL_VMMC_IMPORTED]++;
    *proxy = at;
    return 0;
}

/* ---- import ---- */

int VMMC_ImportRecvBuf(VMMC_NodeID node, VMMC_Process process, uint32_t rbufid, void **proxy, size_t *nbytes,
                       int64_t timeout_ns)
{
    rnl_import *m;
    size_t bytes;
    int status = rnl_vmmc_enter("VMMC_ImportRecvBuf");
    if (status == 0)
        status = rnl_window_import(rnl_vmmc.ep, node, rbufid, timeout_ns, &m, &bytes);
    if (status == 0)
        status = add(m, bytes, node, process, proxy);
    if (status == 0 && nbytes)
        *nbytes = bytes;
    return status;
}

int VMMC_ImportRecvBufReq(VMMC_NodeID node, VMMC_Process process, uint32_t rbufid, void **proxy, int64_t *nbytes)
{
    int status = rnl_vmmc_enter("VMMC_ImportRecvBufReq");
    if (status < 0)
        return status;
    struct rnl_vmmc_request *r = calloc(1, sizeof *r);
    if (!r)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a request");
    *r = (struct rnl_vmmc_request){.node = node, .process = process, .proxy = proxy, .nbytes = nbytes};
    status = rnl_import_begin(rnl_vmmc.ep, node, rbufid, &r->import);
    if (status < 0) {
        free(r);
        return status;
    }
    *nbytes = 0;
    r->next = rnl_vmmc.requests;
    rnl_vmmc.requests = r;
    return 0;
}

void rnl_vmmc_drain(void)
{
    for (struct rnl_vmmc_request **link = &rnl_vmmc.requests, *r; (r = *link);) {
        size_t bytes = 0;
        int state = rnl_import_state(r->import, &bytes);
        if (state == 0) {
            link = &r->next;
            continue;
        }
        *link = r->next;
        if (state < 0)
            (void)rnl_import_drop(r->import);
        else
            state = add(r->import, bytes, r->node, r->process, r->proxy);
        *r->nbytes = state < 0 ? state : (int64_t)bytes;
        free(r);
    }
}

int VMMC_CancelImport(int64_t *nbytes)
{
    int status = rnl_vmmc_enter("VMMC_CancelImport");
    if (status < 0)
        return status;
    for (struct rnl_vmmc_request **link = &rnl_vmmc.requests, *r; (r = *link); link = &r->next) {
        if (r->nbytes != nbytes)
            continue;
        *link = r->next;
        status = rnl_import_drop(r->import);
        free(r);
        return status;
    }
    return rnl_fail(RNL_ERR_ARG, "no import was requested with this word, or it is complete");
}

int VMMC_UnimportRecvBuf(void *proxy)
{
    int status = rnl_vmmc_enter("VMMC_UnimportRecvBuf");
    if (status < 0)
        return status;
    size_t place = behind((uintptr_t)proxy);
    if (place == 0 || rnl_vmmc.import[place - 1].proxy != (uintptr_t)proxy)
        return rnl_fail(RNL_ERR_ARG, "no import begins at %p", proxy);
    struct rnl_vmmc_import old = rnl_vmmc.import[--place];
    rnl_vmmc.imports--;
    memmove(rnl_vmmc.import + place, rnl_vmmc.import + place + 1, (rnl_vmmc.imports - place) * sizeof old);
    rnl_vmmc.last.bytes = 0;
    munmap(proxy, old.mapped);
    return rnl_import_drop(old.import);
}

/* ---- messages ---- */

/* Finds which import dest is of, for calls that do not go where the one before went. */
static RNL_NOINLINE int translate(const void *dest, const char *function)
{
    int status = rnl_vmmc_enter(function);
    if (status < 0)
        return status;
    size_t place = behind((uintptr_t)dest);
    if (place == 0 || (uintptr_t)dest - rnl_vmmc.import[place - 1].proxy > rnl_vmmc.import[place - 1].bytes)
        return rnl_fail(RNL_ERR_ARG, "%p is not a proxy address: nothing is imported there", dest);
    rnl_vmmc.last = rnl_vmmc.import[place - 1];
    return 0;
}

/* After it, dest is in rnl_vmmc.last; that the message ends there, too, is for the window to see. */
RNL_INLINE int locate(const void *dest, size_t *offset, const char *function)
{
    if (RNL_UNLIKELY((uintptr_t)dest - rnl_vmmc.last.proxy >= rnl_vmmc.last.bytes)) {
        int status = translate(dest, function);
        if (status < 0)
            return status;
    }
    *offset = (uintptr_t)dest - rnl_vmmc.last.proxy;
    return 0;
}

int VMMC_SendMsg(const void *src, void *dest, size_t nbytes)
{
    size_t offset;
    int status = locate(dest, &offset, "VMMC_SendMsg");
    return status < 0 ? status : rnl_put(rnl_vmmc.last.import, offset, src, nbytes, 0);
}

int VMMC_SendMsgWithNotify(const void *src, void *dest, size_t nbytes)
{
    size_t offset;
    int status = locate(dest, &offset, "VMMC_SendMsgWithNotify");
    return status < 0 ? status : rnl_put_any(rnl_vmmc.last.import, offset, src, nbytes, RNL_PUT_NOTIFY);
}

int VMMC_SendMsgReq(const void *src, void *dest, size_t nbytes, unsigned flags, int32_t *state)
{
    size_t offset;
    int status = locate(dest, &offset, "VMMC_SendMsgReq");
    static_assert(sizeof(rnl_token) == sizeof *state, "a token is the word alone");
    return status < 0 ? status : rnl_put_async(rnl_vmmc.last.import, offset, src, nbytes, flags, (rnl_token *)state);
}

void rnl_vmmc_free_imports(bool windows)
{
    for (struct rnl_vmmc_request *r; (r = rnl_vmmc.requests);) {
        rnl_vmmc.requests = r->next;
        if (windows)
            (void)rnl_import_drop(r->import);
        free(r);
    }
    for (size_t i = 0; i < rnl_vmmc.imports; i++) {
        munmap((void *)rnl_vmmc.import[i].proxy, rnl_vmmc.import[i].mapped);
        if (windows)
            (void)rnl_import_drop(rnl_vmmc.import[i].import);
    }
    free(rnl_vmmc.import);
    rnl_vmmc.import = NULL;
    rnl_vmmc.imports = 0;
}
