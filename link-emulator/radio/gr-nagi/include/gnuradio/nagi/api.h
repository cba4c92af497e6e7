/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/attributes.h>

#ifdef gnuradio_nagi_EXPORTS
#define NAGI_API __GR_ATTR_EXPORT
#else
#define NAGI_API __GR_ATTR_IMPORT
#endif
