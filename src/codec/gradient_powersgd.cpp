// Low rank: a gradient matrix M of rows × columns travels as P (rows × rank) and Q (columns × rank), M ≈ P
// Qᵀ. P spans what M makes of the directions that the last call found; Q is M as seen from there.
#include "codec/gradient_stages.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"

namespace w5xde::gradient {

namespace {

// A tensor of two dimensions and more is a matrix: its first dimension against all others.
struct Matrix {
  std::uint64_t offset = 0, rows = 0, columns = 0;
};

// Whether two thin matrices are fewer floats than the tensor itself.
bool thins(const Matrix& matrix, std::uint32_t rank) {
  return rank * (matrix.rows + matrix.columns) < matrix.rows * matrix.columns;
}

Matrix matrix_of(const BlockLayout::Entry& entry) {
  const std::uint64_t elements = entry.shape.elements();
  const auto rows = entry.shape.rank() < 2 ? 1 : static_cast<std::uint64_t>(entry.shape[0]);
  return {.offset = entry.offset, .rows = rows, .columns = rows == 0 ? 0 : elements / rows};
}

// Column by column: what is left of it beside those before, at length one. A column of which nothing is left
// becomes zero, and says nothing.
void orthonormalise(std::span<float> p, std::uint64_t rows, std::uint32_t rank) {
  const auto dot = [&](const float* left, const float* right) {
    double sum = 0;
    for (std::uint64_t i = 0; i < rows; ++i)
      sum += static_cast<double>(left[i]) * static_cast<double>(right[i]);
    return sum;
  };
  for (std::uint32_t k = 0; k < rank; ++k) {
    float* column = p.data() + k * rows;
    const double before = dot(column, column);
    // Twice, or rounding would leave them crooked.
    for (int pass = 0; pass < 2; ++pass) {
      for (std::uint32_t other = 0; other < k; ++other) {
        const float* against = p.data() + other * rows;
        const auto product = static_cast<float>(dot(column, against));
        for (std::uint64_t i = 0; i < rows; ++i) column[i] -= product * against[i];
      }
    }
    const double square = dot(column, column);
    const double inverse = square > 1e-12 * before && square > 0 ? 1 / std::sqrt(square) : 0;
    for (std::uint64_t i = 0; i < rows; ++i)
      column[i] = static_cast<float>(static_cast<double>(column[i]) * inverse);
  }
}

// P and Q lie column by column: rank runs of `rows` floats, rank runs of `columns`.
void multiply(const float* m, const Matrix& matrix, std::uint32_t rank, const float* q, float* p) {
  for (std::uint32_t k = 0; k < rank; ++k) {
    for (std::uint64_t i = 0; i < matrix.rows; ++i) {
      const float* row = m + i * matrix.columns;
      const float* direction = q + k * matrix.columns;
      // Side by side, in an order that no compiler changes.
      float sums[8] = {};
      for (std::uint64_t j = 0; j < matrix.columns; ++j) sums[j % 8] += row[j] * direction[j];
      p[k * matrix.rows + i] =
          ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    }
  }
}

void multiply_transposed(const float* m, const Matrix& matrix, std::uint32_t rank, const float* p, float* q) {
  std::fill_n(q, rank * matrix.columns, 0.0f);
  for (std::uint64_t i = 0; i < matrix.rows; ++i) {
    const float* row = m + i * matrix.columns;
    for (std::uint32_t k = 0; k < rank; ++k) {
      const float weight = p[k * matrix.rows + i];
      float* sum = q + k * matrix.columns;
      for (std::uint64_t j = 0; j < matrix.columns; ++j) sum[j] += weight * row[j];
    }
  }
}

std::uint64_t floats_of(const Matrix& matrix, std::uint32_t rank) {
  return thins(matrix, rank) ? rank * (matrix.rows + matrix.columns) : matrix.rows * matrix.columns;
}

}  // namespace

void encode_powersgd(std::span<const float> block, const BlockLayout& layout, std::uint32_t rank,
                     std::vector<float>& directions, Out& out) {
  std::uint64_t direction_floats = 0, floats = 0;
  for (const auto& entry : layout.entries()) {
    const Matrix matrix = matrix_of(entry);
    if (thins(matrix, rank)) direction_floats += rank * matrix.columns;
    floats += floats_of(matrix, rank);
  }
  if (directions.size() != direction_floats) {
    directions.resize(direction_floats);
    Random random(1);  // any directions will do, but everywhere the same
    for (float& value : directions) value = static_cast<float>(random.normal());
  }
  std::size_t at = out.size();
  out.resize(at + floats * sizeof(float));
  float* q = directions.data();
  std::vector<float> p;
  for (const auto& entry : layout.entries()) {
    const Matrix matrix = matrix_of(entry);
    const float* m = block.data() + matrix.offset;
    if (!thins(matrix, rank)) {
      std::memcpy(out.data() + at, m, matrix.rows * matrix.columns * sizeof(float));
    } else {
      p.resize(rank * matrix.rows);
      multiply(m, matrix, rank, q, p.data());
      orthonormalise(p, matrix.rows, rank);
      multiply_transposed(m, matrix, rank, p.data(), q);
      std::memcpy(out.data() + at, p.data(), p.size() * sizeof(float));
      std::memcpy(out.data() + at + p.size() * sizeof(float), q, rank * matrix.columns * sizeof(float));
      q += rank * matrix.columns;
    }
    at += floats_of(matrix, rank) * sizeof(float);
  }
}

Status decode_powersgd(Bytes encoded, const BlockLayout& layout, std::uint32_t rank, std::span<float> block) {
  std::uint64_t floats = 0;
  for (const auto& entry : layout.entries()) floats += floats_of(matrix_of(entry), rank);
  if (encoded.size() != floats * sizeof(float)) return corrupt("a low-rank gradient of another length");
  std::ranges::fill(block, 0.0f);
  std::vector<float> thin;
  for (const auto& entry : layout.entries()) {
    const Matrix matrix = matrix_of(entry);
    float* m = block.data() + matrix.offset;
    const std::size_t bytes = floats_of(matrix, rank) * sizeof(float);
    if (!thins(matrix, rank)) {
      std::memcpy(m, encoded.data(), bytes);
    } else {
      thin.resize(rank * (matrix.rows + matrix.columns));
      std::memcpy(thin.data(), encoded.data(), bytes);
      const float* q = thin.data() + rank * matrix.rows;
      for (std::uint64_t i = 0; i < matrix.rows; ++i) {
        for (std::uint32_t k = 0; k < rank; ++k) {
          const float weight = thin[k * matrix.rows + i];
          for (std::uint64_t j = 0; j < matrix.columns; ++j)
            m[i * matrix.columns + j] += weight * q[k * matrix.columns + j];
        }
      }
    }
    encoded = encoded.subspan(bytes);
  }
  return {};
}

}  // namespace w5xde::gradient
