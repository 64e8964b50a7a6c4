/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_key.h - the key by which the daemons of several hosts know each other: a file with 64 hexadecimal digits in a
 * line, which its owner alone may read and write. Root's is for the daemons of nodes, a user's for this user's own. */
#ifndef RNL_MEET_NODE_KEY_H
#define RNL_MEET_NODE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RNL_NODE_KEY_BYTES = 32, RNL_NODE_KEY_PRINT = 40 /* of its fingerprint, with the 0 */ };

/* Writes the name of the file that the present user's daemons read. 0 or RNL_ERR_ARG: the user has no home. */
int rnl_node_key_file(char *out, size_t n);
/* Whether there is one, the present user's or that of the node's daemon. */
bool rnl_node_key_present(void);
/* Reads a key, which the caller wipes. 0; RNL_ERR_UNREACHABLE: there is no such file; RNL_ERR_REFUSED: others may read
 * or have written it, or it is no key. */
int rnl_node_key_read(const char *file, unsigned char out[RNL_NODE_KEY_BYTES]);
/* Takes a key from text: 64 digits, and nothing else but white space. */
bool rnl_node_key_parse(const char *text, unsigned char out[RNL_NODE_KEY_BYTES]);
/* Writes a key to a new file, and makes the folders that lead to it. The file is whole or not there. 0;
 * RNL_ERR_REFUSED: there is one; RNL_ERR_SYSTEM. */
int rnl_node_key_write(const char *file, const unsigned char key[RNL_NODE_KEY_BYTES]);
/* What may be shown of a key: groups of four digits; and the port at which daemons that have it listen. */
void rnl_node_key_print(const unsigned char key[RNL_NODE_KEY_BYTES], char out[RNL_NODE_KEY_PRINT]);
uint16_t rnl_node_key_port(const unsigned char key[RNL_NODE_KEY_BYTES], bool of_node);

#endif
