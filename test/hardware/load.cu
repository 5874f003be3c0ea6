// Keeps a GPU busy for some seconds: floating point work over memory that does not fit its caches.
#include <cstdio>
#include <cstdlib>
#include <ctime>

__global__ void work(float* data, long n, int rounds) {
  for (long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<long>(gridDim.x) * blockDim.x) {
    float value = data[i];
    for (int r = 0; r < rounds; ++r) value = value * 1.0001f + 0.5f;
    data[i] = value;
  }
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const long n = 256L << 20;
  float* data = nullptr;
  if (cudaMalloc(&data, n * sizeof(float)) != cudaSuccess) return 1;
  const std::time_t end = std::time(nullptr) + static_cast<std::time_t>(seconds);
  long launches = 0;
  while (std::time(nullptr) < end) {
    work<<<1024, 256>>>(data, n, 64);
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    ++launches;
  }
  std::printf("load: %ld launches\n", launches);
  return 0;
}
