// Low rank: a gradient matrix M of rows × columns travels as P (rows × rank) and Q (columns × rank), M ≈ P
// Qᵀ. P spans what M makes of the directions that the last call found; Q is M as seen from there. P and Q lie
// column by column: rank runs of `rows` floats, rank runs of `columns`.
#include "codec/gradient_stages.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "codec/vectorised.h"

namespace w5xde::gradient {

namespace {

// A tensor of two dimensions and more is a matrix: its first dimension against all others.
struct Matrix {
  std::uint64_t offset = 0, rows = 0, columns = 0;
  std::uint32_t rank = 0;

  Matrix(const BlockLayout::Entry& entry, std::uint32_t rank_wanted)
      : offset(entry.offset),
        rows(entry.shape.rank() < 2 ? 1 : static_cast<std::uint64_t>(entry.shape[0])),
        columns(rows == 0 ? 0 : entry.shape.elements() / rows),
        rank(rank_wanted) {}

  std::uint64_t elements() const { return rows * columns; }
  // Whether two thin matrices are fewer floats than the tensor itself.
  bool thins() const { return rank * (rows + columns) < elements(); }
  std::uint64_t encoded_floats() const { return thins() ? rank * (rows + columns) : elements(); }
};

// Sums have a fixed number of lanes, added up at the end, so that they are the same on every machine.
constexpr std::uint64_t kLanes = 8;
using Lanes [[gnu::vector_size(kLanes * sizeof(float))]] = float;
constexpr std::uint64_t kExactLanes = 4;
using ExactLanes [[gnu::vector_size(kExactLanes * sizeof(double))]] = double;
using HalfLanes [[gnu::vector_size(kExactLanes * sizeof(float))]] = float;

W5XDE_KERNEL float folded(const Lanes& sums) {
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

W5XDE_KERNEL double exact_dot(const float* left, const float* right, std::uint64_t count) {
  ExactLanes sums = {};
  const auto add_lanes = [&](std::uint64_t i, std::uint64_t floats) {
    HalfLanes one = {}, other = {};
    std::memcpy(&one, left + i, floats * sizeof(float));
    std::memcpy(&other, right + i, floats * sizeof(float));
    sums += __builtin_convertvector(one, ExactLanes) * __builtin_convertvector(other, ExactLanes);
  };
  std::uint64_t i = 0;
  for (; i + kExactLanes <= count; i += kExactLanes) add_lanes(i, kExactLanes);
  for (; i < count; ++i) add_lanes(i, 1);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Column by column: what is left of it beside those before, at length one. A column of which nothing is left
// becomes zero, and says nothing.
W5XDE_KERNEL void orthonormalise(float* p, std::uint64_t rows, std::uint32_t rank) {
  for (std::uint32_t k = 0; k < rank; ++k) {
    float* const column = p + k * rows;
    const double before = exact_dot(column, column, rows);
    // Twice, or rounding would leave them crooked.
    for (int pass = 0; pass < 2; ++pass) {
      for (std::uint32_t other = 0; other < k; ++other) {
        const float* against = p + other * rows;
        const auto product = static_cast<float>(exact_dot(column, against, rows));
        for (std::uint64_t i = 0; i < rows; ++i) column[i] -= product * against[i];
      }
    }
    const double square = exact_dot(column, column, rows);
    const double inverse = square > 1e-12 * before && square > 0 ? 1 / std::sqrt(square) : 0;
    for (std::uint64_t i = 0; i < rows; ++i)
      column[i] = static_cast<float>(static_cast<double>(column[i]) * inverse);
  }
}

// One row against `width` directions at once, so that it is loaded once for all.
template <std::uint32_t width>
W5XDE_KERNEL void dots(const float* row, const float* q, std::uint64_t columns, float* p,
                       std::uint64_t rows) {
  Lanes sums[width] = {};
  const auto add_lanes = [&](std::uint64_t j, std::uint64_t floats) {
    Lanes mine = {};
    std::memcpy(&mine, row + j, floats * sizeof(float));
    for (std::uint32_t k = 0; k < width; ++k) {
      Lanes direction = {};
      std::memcpy(&direction, q + k * columns + j, floats * sizeof(float));
      sums[k] += mine * direction;
    }
  };
  std::uint64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) add_lanes(j, kLanes);
  for (; j < columns; ++j) add_lanes(j, 1);
  for (std::uint32_t k = 0; k < width; ++k) p[k * rows] = folded(sums[k]);
}

// P = M Q
W5XDE_KERNEL void multiply(const float* m, std::uint64_t rows, std::uint64_t columns, std::uint32_t rank,
                           const float* q, float* p) {
  for (std::uint64_t i = 0; i < rows; ++i) {
    const float* row = m + i * columns;
    std::uint32_t k = 0;
    for (; k + 4 <= rank; k += 4) dots<4>(row, q + k * columns, columns, p + k * rows + i, rows);
    for (; k < rank; ++k) dots<1>(row, q + k * columns, columns, p + k * rows + i, rows);
  }
}

// Q = Mᵀ P, four rows at a time: each sum is loaded and stored once for the four.
W5XDE_KERNEL void multiply_transposed(const float* m, std::uint64_t rows, std::uint64_t columns,
                                      std::uint32_t rank, const float* p, float* __restrict q) {
  std::memset(q, 0, rank * columns * sizeof(float));
  std::uint64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const float* row = m + i * columns;
    for (std::uint32_t k = 0; k < rank; ++k) {
      const float* weight = p + k * rows + i;
      const float first = weight[0], second = weight[1], third = weight[2], fourth = weight[3];
      float* __restrict sum = q + k * columns;
      for (std::uint64_t j = 0; j < columns; ++j)
        sum[j] += (first * row[j] + second * row[columns + j]) +
                  (third * row[2 * columns + j] + fourth * row[3 * columns + j]);
    }
  }
  for (; i < rows; ++i)
    for (std::uint32_t k = 0; k < rank; ++k)
      for (std::uint64_t j = 0; j < columns; ++j) q[k * columns + j] += p[k * rows + i] * m[i * columns + j];
}

// A row of P Qᵀ, four directions at a time. The encoded floats may lie anywhere.
W5XDE_KERNEL void row_of_product(const std::byte* p, const std::byte* q, std::uint64_t rows,
                                 std::uint64_t columns, std::uint32_t rank, float* __restrict row) {
  const auto at = [](const std::byte* floats, std::uint64_t index) {
    return load<float>(floats + index * sizeof(float));
  };
  std::uint32_t k = 0;
  std::memset(row, 0, columns * sizeof(float));
  for (; k + 4 <= rank; k += 4) {
    const float first = at(p, k * rows), second = at(p, (k + 1) * rows), third = at(p, (k + 2) * rows),
                fourth = at(p, (k + 3) * rows);
    const std::byte* from = q + k * columns * sizeof(float);
    for (std::uint64_t j = 0; j < columns; ++j)
      row[j] += (first * at(from, j) + second * at(from, columns + j)) +
                (third * at(from, 2 * columns + j) + fourth * at(from, 3 * columns + j));
  }
  for (; k < rank; ++k) {
    const float weight = at(p, k * rows);
    for (std::uint64_t j = 0; j < columns; ++j) row[j] += weight * at(q, k * columns + j);
  }
}

W5XDE_KERNEL void product(const std::byte* p, std::uint64_t rows, std::uint64_t columns, std::uint32_t rank,
                          float* m) {
  const std::byte* q = p + rank * rows * sizeof(float);
  for (std::uint64_t i = 0; i < rows; ++i)
    row_of_product(p + i * sizeof(float), q, rows, columns, rank, m + i * columns);
}

// M -= P Qᵀ. Answers whether what is left is finite; two large numbers' product may not be.
W5XDE_KERNEL bool subtract_product(const std::byte* p, std::uint64_t rows, std::uint64_t columns,
                                   std::uint32_t rank, float* __restrict m, float* __restrict row) {
  const std::byte* q = p + rank * rows * sizeof(float);
  std::int32_t largest = 0;
  for (std::uint64_t i = 0; i < rows; ++i) {
    row_of_product(p + i * sizeof(float), q, rows, columns, rank, row);
    float* __restrict left = m + i * columns;
    for (std::uint64_t j = 0; j < columns; ++j) {
      left[j] -= row[j];
      largest = std::max(largest, std::bit_cast<std::int32_t>(left[j]) & 0x7fffffff);
    }
  }
  return largest < 0x7f800000;
}

void fill_with_nan(std::byte* to, std::uint64_t floats) {
  for (std::uint64_t i = 0; i < floats; ++i)
    store(to + i * sizeof(float), std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

std::uint64_t powersgd_bytes(const BlockLayout& layout, std::uint32_t rank) {
  std::uint64_t floats = 0;
  for (const auto& entry : layout.entries()) floats += Matrix(entry, rank).encoded_floats();
  return floats * sizeof(float);
}

void PowerSgd::begin(const BlockLayout& layout, std::uint32_t rank) {
  rank_ = rank;
  std::uint64_t direction_floats = 0, p_floats = 0, row_floats = 0;
  for (const auto& entry : layout.entries()) {
    const Matrix matrix(entry, rank);
    if (!matrix.thins()) continue;
    direction_floats += rank * matrix.columns;
    p_floats = std::max(p_floats, rank * matrix.rows);
    row_floats = std::max(row_floats, matrix.columns);
  }
  p_.resize(p_floats);
  row_.resize(row_floats);
  directions_.resize(direction_floats);
  Random random(1);  // any directions will do, but everywhere the same
  for (float& value : directions_) value = static_cast<float>(random.normal());
}

bool PowerSgd::encode(std::span<const float> gradient, const BlockLayout& layout, std::uint32_t rank,
                      Feedback feedback, std::byte* to) {
  bool finite = add(gradient, feedback);
  if (!finite) {
    fill_with_nan(to, powersgd_bytes(layout, rank) / sizeof(float));
    return false;
  }
  if (rank_ != rank) begin(layout, rank);
  float* q = directions_.data();
  std::byte* at = to;
  for (const auto& entry : layout.entries()) {
    const Matrix matrix(entry, rank);
    const std::uint64_t rows = matrix.rows, columns = matrix.columns;
    float* m = feedback.left.data() + matrix.offset;
    const std::uint64_t bytes = matrix.encoded_floats() * sizeof(float);
    if (bytes == 0) continue;
    if (!matrix.thins()) {
      std::memcpy(at, m, bytes);
      std::memset(m, 0, bytes);
    } else {
      vectorised<multiply>(m, rows, columns, rank, q, p_.data());
      vectorised<orthonormalise>(p_.data(), rows, rank);
      vectorised<multiply_transposed>(m, rows, columns, rank, p_.data(), q);
      std::memcpy(at, p_.data(), rank * rows * sizeof(float));
      std::memcpy(at + rank * rows * sizeof(float), q, rank * columns * sizeof(float));
      finite &= vectorised<subtract_product>(at, rows, columns, rank, m, row_.data());
      q += rank * columns;
    }
    at += bytes;
  }
  if (finite) return true;
  rank_ = 0;  // directions that are no numbers would lead nowhere for ever
  fill_with_nan(to, powersgd_bytes(layout, rank) / sizeof(float));
  return false;
}

Status decode_powersgd(Bytes encoded, const BlockLayout& layout, std::uint32_t rank, std::span<float> block) {
  if (encoded.size() != powersgd_bytes(layout, rank)) return corrupt("a low-rank gradient of another length");
  const std::byte* from = encoded.data();
  for (const auto& entry : layout.entries()) {
    const Matrix matrix(entry, rank);
    float* m = block.data() + matrix.offset;
    const std::uint64_t bytes = matrix.encoded_floats() * sizeof(float);
    if (matrix.thins()) {
      vectorised<product>(from, matrix.rows, matrix.columns, rank, m);
    } else if (bytes > 0) {
      std::memcpy(m, from, bytes);
    }
    from += bytes;
  }
  return {};
}

}  // namespace w5xde::gradient
