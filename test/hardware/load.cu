// Keeps a GPU busy for some seconds: floating point work over memory that does not fit its caches.
// "load fault" writes where nothing is, which the driver reports as Xid 31.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

__global__ void work(float* data, long n, int rounds) {
  for (long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<long>(gridDim.x) * blockDim.x) {
    float value = data[i];
    for (int r = 0; r < rounds; ++r) value = value * 1.0001f + 0.5f;
    data[i] = value;
  }
}

__global__ void stray(int* nowhere) { *nowhere = 1; }

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "fault") == 0) {
    stray<<<1, 1>>>(reinterpret_cast<int*>(0x10));
    std::printf("load: %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const long n = 256L << 20;
  float* data = nullptr;
  if (const cudaError_t e = cudaMalloc(&data, n * sizeof(float)); e != cudaSuccess) {
    std::printf("load: %s\n", cudaGetErrorString(e));
    return 1;
  }
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
