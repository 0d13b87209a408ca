// A table in a text file: a line of column names, then a sample a line, fields separated by commas. A field
// may stand in double quotes, in which "" is one of them.
//
//   csv:FILE?label=COLUMN                          what to predict; the other columns are inputs, as one row
//   of f32 csv:FILE?label=COLUMN&categories=A,B&drop=C    columns of numbers that are categories; columns to
//   leave out
//
// A column whose first value is a number has numbers, any other column categories: its distinct texts,
// sorted. A category becomes as many inputs as it has texts, of which one is 1 and the others are 0. A label
// of categories is classes; so is one whose numbers are whole and from 0 on, unless `&numbers=COLUMN` says
// that they are values.
#pragma once

#include <string_view>

#include "data/array_dataset.h"
#include "w5xde/result.h"

namespace w5xde {

Result<SharedDataset> open_csv(std::string_view place, const TellProgress& progress = {});

}  // namespace w5xde
