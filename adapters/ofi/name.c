/* SPDX-License-Identifier: BSD-3-Clause
 *
 * name.c - names of endpoints: the printable address of a domain (src/meet/address.c) in fewer bytes, and back. */
#include "wire.h"

#include <runnel/meet.h>

#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const unsigned char magic[2] = {'R', 'N'};
/* Where the parts of an address are in what is packed. */
enum { USER = 0, HOST = 4, NAME = 12, TOKEN = 28, IP = 44, IP_BYTES = RNL_OFI_PACKED_BYTES - IP };
static const struct {
    unsigned at, bytes;
} in_hex[] = {{HOST, NAME - HOST}, {NAME, TOKEN - NAME}, {TOKEN, IP - TOKEN}};
enum { HEX_PARTS = sizeof in_hex / sizeof in_hex[0], HEX_BYTES = 2 * (TOKEN - NAME) + 1, IP_TEXT = 23 };

bool rnl_ofi_name_pack(struct rnl_ofi_name *out, const char *address, unsigned ep)
{
    unsigned user;
    int digits = 0;
    size_t got;
    memset(out, 0, sizeof *out);
    memcpy(out->magic, magic, sizeof magic);
    out->ep = (uint8_t)ep;
    if (ep > UINT8_MAX || sscanf(address, "rnl1.%10u%n", &user, &digits) != 1 || digits == 0)
        return false;
    memcpy(out->packed + USER, &(uint32_t){user}, sizeof(uint32_t));
    const char *text = address + digits;
    for (unsigned i = 0; i < HEX_PARTS; i++) {
        size_t n = in_hex[i].bytes;
        if (*text != '.' || strnlen(text + 1, 2 * n) < 2 * n ||
            sodium_hex2bin(out->packed + in_hex[i].at, n, text + 1, 2 * n, NULL, &got, NULL) != 0 || got != n)
            return false;
        text += 1 + 2 * n;
    }
    out->kind = *text == '@' ? RNL_OFI_NAME_ANYWHERE : RNL_OFI_NAME_HERE;
    return *text == '@' ? sodium_base642bin(out->packed + IP, IP_BYTES, text + 1, strlen(text + 1), NULL, &got, NULL,
                                            sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
                              got == IP_BYTES
                        : *text == '\0';
}

bool rnl_ofi_name_unpack(const struct rnl_ofi_name *name, char *text)
{
    char hex[HEX_BYTES], ip[IP_TEXT];
    uint32_t user;
    memcpy(&user, name->packed + USER, sizeof user);
    if (memcmp(name->magic, magic, sizeof magic) != 0 ||
        (name->kind != RNL_OFI_NAME_HERE && name->kind != RNL_OFI_NAME_ANYWHERE))
        return false;
    /* One address, one name: peers are found by these bytes. */
    if (sodium_is_zero(name->packed + IP, IP_BYTES) != (name->kind == RNL_OFI_NAME_HERE))
        return false;
    int n = snprintf(text, RNL_ADDRESS_BYTES, "rnl1.%u", user);
    for (unsigned i = 0; i < HEX_PARTS; i++) {
        (void)sodium_bin2hex(hex, sizeof hex, name->packed + in_hex[i].at, in_hex[i].bytes);
        n += snprintf(text + n, RNL_ADDRESS_BYTES - (size_t)n, ".%s", hex);
    }
    if (name->kind == RNL_OFI_NAME_ANYWHERE) {
        (void)sodium_bin2base64(ip, sizeof ip, name->packed + IP, IP_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        (void)snprintf(text + n, RNL_ADDRESS_BYTES - (size_t)n, "@%s", ip);
    }
    return true;
}
