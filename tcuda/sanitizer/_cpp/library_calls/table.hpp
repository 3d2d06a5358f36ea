// The functions of NVIDIA's libraries that use memory of the device, and what each argument is.
//
// A row has the arguments of a function in their order, with blanks between them:
//     name[:role[(extent)]][^name][@item]
// Roles of a value:     none: 32 bits, or a handle; wide: 64 bits; float, double: passed as a floating-point number
//                       data, index, nccl, cupy: a code that names a type of items; order: 2 for matrices by rows;
//                       vector: a reference to a C++ vector; its number is the product of its items
// Roles of a pointer:   read, write, both; maybe: the call may leave the memory alone; table: addresses, which are
//                       read, while the memory behind them is unknown
// Extent:               (count), (count;increment), (rows,columns;leading) and
//                       (rows,columns;leading;stride,batches), in items. A number in it is a name of another argument,
//                       a constant, a sum, a product, or `name?a:b`, that is a if the argument is not 0.
//                       `^name` exchanges rows and columns if the operation `name` is not 0 (or an order is 2).
//                       Without an extent, the end of the memory is unknown.
// Item:                 @argument that names the type; @bytes; @real, that is the real type of the function's type.
//                       Without an item: the type of the function, which is the letter in its name.
// Memory that a handle, a plan or a descriptor (an object of the library) knows:
//     object            the function uses the memory of the object: a workspace
//     keeps, sets       a pointer to a workspace: the call uses the workspace and the object keeps it; the object only
//                       keeps it
//     new               a pointer to the new object; holds, indexes: the values and the structure of the new object
//     repoints          the object gets other pointers
//     ends              the object ends
//     resizes           the object has other extents from now on
//     reads, writes, fills: the object's values and structure are read; the values are written and the structure is
//                       read; both are written
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tcuda::library_calls {

// What a function does beyond the roles of its arguments.
enum class Extra : std::uint8_t {
    none,
    fft_plan_1d,
    fft_plan_many,
    fft_plan_many_wide, // with 64-bit numbers and two types
    fft,
    group_start,
    group_end,
    grouped, // the call is made by the end of the group that is open
};

struct Row {
    std::string_view name;      // `?` stands for each of `types`
    std::string_view types;     // with blanks between them; the first letter is the type of the items
    std::string_view arguments;
    Extra extra = Extra::none;
};

inline constexpr Row rows[] = {
    // cuBLAS, vectors
    {"cublas?axpy_v2", "S D C Z", "handle:object n alpha:read(1) x:read(n;incx) incx y:both(n;incy) incy"},
    {"cublas?copy_v2", "S D C Z", "handle:object n x:read(n;incx) incx y:write(n;incy) incy"},
    {"cublas?swap_v2", "S D C Z", "handle:object n x:both(n;incx) incx y:both(n;incy) incy"},
    {"cublas?scal_v2", "S D C Z", "handle:object n alpha:read(1) x:both(n;incx) incx"},
    {"cublasCsscal_v2", "", "handle:object n alpha:read(1)@4 x:both(n;incx)@8 incx"},
    {"cublasZdscal_v2", "", "handle:object n alpha:read(1)@8 x:both(n;incx)@16 incx"},
    {"cublas?dot_v2", "S D", "handle:object n x:read(n;incx) incx y:read(n;incy) incy result:write(1)"},
    {"cublas?dotc_v2", "C Z", "handle:object n x:read(n;incx) incx y:read(n;incy) incy result:write(1)"},
    {"cublas?dotu_v2", "C Z", "handle:object n x:read(n;incx) incx y:read(n;incy) incy result:write(1)"},
    {"cublasDotEx", "",
     "handle:object n x:read(n;incx)@xType xType:data incx y:read(n;incy)@yType yType:data incy "
     "result:write(1)@resultType resultType:data executionType"},
    {"cublasDotcEx", "",
     "handle:object n x:read(n;incx)@xType xType:data incx y:read(n;incy)@yType yType:data incy "
     "result:write(1)@resultType resultType:data executionType"},
    {"cublasNrm2Ex", "",
     "handle:object n x:read(n;incx)@xType xType:data incx result:write(1)@resultType resultType:data executionType"},
    {"cublasScalEx", "",
     "handle:object n alpha:read(1)@alphaType alphaType:data x:both(n;incx)@xType xType:data incx executionType"},
    {"cublasAxpyEx", "",
     "handle:object n alpha:read(1)@alphaType alphaType:data x:read(n;incx)@xType xType:data incx "
     "y:both(n;incy)@yType yType:data incy executionType"},
    {"cublas?nrm2_v2", "S D", "handle:object n x:read(n;incx) incx result:write(1)"},
    {"cublasScnrm2_v2", "", "handle:object n x:read(n;incx)@8 incx result:write(1)@4"},
    {"cublasDznrm2_v2", "", "handle:object n x:read(n;incx)@16 incx result:write(1)@8"},
    {"cublas?asum_v2", "S D", "handle:object n x:read(n;incx) incx result:write(1)"},
    {"cublasScasum_v2", "", "handle:object n x:read(n;incx)@8 incx result:write(1)@4"},
    {"cublasDzasum_v2", "", "handle:object n x:read(n;incx)@16 incx result:write(1)@8"},
    {"cublasI?amax_v2", "s d c z", "handle:object n x:read(n;incx) incx result:write(1)@4"},
    {"cublasI?amin_v2", "s d c z", "handle:object n x:read(n;incx) incx result:write(1)@4"},

    // cuBLAS, a matrix and vectors
    {"cublas?gemv_v2", "S D C Z",
     "handle:object trans m n alpha:read(1) A:read(m,n;lda) lda x:read(trans?m:n;incx) incx beta:read(1) "
     "y:write(trans?n:m;incy) incy"},
    {"cublas?ger_v2", "S D",
     "handle:object m n alpha:read(1) x:read(m;incx) incx y:read(n;incy) incy A:both(m,n;lda) lda"},
    {"cublas?gerc_v2", "C Z",
     "handle:object m n alpha:read(1) x:read(m;incx) incx y:read(n;incy) incy A:both(m,n;lda) lda"},
    {"cublas?geru_v2", "C Z",
     "handle:object m n alpha:read(1) x:read(m;incx) incx y:read(n;incy) incy A:both(m,n;lda) lda"},
    {"cublas?sbmv_v2", "S D",
     "handle:object uplo n k alpha:read(1) A:read(k+1,n;lda) lda x:read(n;incx) incx beta:read(1) y:write(n;incy) "
     "incy"},
    {"cublas?symv_v2", "S D C Z",
     "handle:object uplo n alpha:read(1) A:read(n,n;lda) lda x:read(n;incx) incx beta:read(1) y:write(n;incy) incy"},
    {"cublas?trsv_v2", "S D C Z", "handle:object uplo trans diag n A:read(n,n;lda) lda x:both(n;incx) incx"},

    // cuBLAS, matrices
    {"cublas?gemm_v2", "S D C Z",
     "handle:object transa transb m n k alpha:read(1) A:read(m,k;lda)^transa lda B:read(k,n;ldb)^transb ldb "
     "beta:read(1) C:write(m,n;ldc) ldc"},
    {"cublasHgemm", "",
     "handle:object transa transb m n k alpha:read(1)@2 A:read(m,k;lda)^transa@2 lda B:read(k,n;ldb)^transb@2 ldb "
     "beta:read(1)@2 C:write(m,n;ldc)@2 ldc"},
    {"cublas?gemmEx", "S C",
     "handle:object transa transb m n k alpha:read(1) A:read(m,k;lda)^transa@Atype Atype:data lda "
     "B:read(k,n;ldb)^transb@Btype Btype:data ldb beta:read(1) C:write(m,n;ldc)@Ctype Ctype:data ldc"},
    {"cublasGemmEx", "",
     "handle:object transa transb m n k alpha:read(1)@4 A:read(m,k;lda)^transa@Atype Atype:data lda "
     "B:read(k,n;ldb)^transb@Btype Btype:data ldb beta:read(1)@4 C:write(m,n;ldc)@Ctype Ctype:data ldc computeType "
     "algo"},
    {"cublas?gemmStridedBatched", "S D C Z",
     "handle:object transa transb m n k alpha:read(1) A:read(m,k;lda;strideA,batchCount)^transa lda strideA:wide "
     "B:read(k,n;ldb;strideB,batchCount)^transb ldb strideB:wide beta:read(1) C:write(m,n;ldc;strideC,batchCount) ldc "
     "strideC:wide batchCount"},
    {"cublasHgemmStridedBatched", "",
     "handle:object transa transb m n k alpha:read(1)@2 A:read(m,k;lda;strideA,batchCount)^transa@2 lda strideA:wide "
     "B:read(k,n;ldb;strideB,batchCount)^transb@2 ldb strideB:wide beta:read(1)@2 "
     "C:write(m,n;ldc;strideC,batchCount)@2 ldc strideC:wide batchCount"},
    {"cublasGemmStridedBatchedEx", "",
     "handle:object transa transb m n k alpha:read(1)@4 A:read(m,k;lda;strideA,batchCount)^transa@Atype Atype:data "
     "lda strideA:wide B:read(k,n;ldb;strideB,batchCount)^transb@Btype Btype:data ldb strideB:wide beta:read(1)@4 "
     "C:write(m,n;ldc;strideC,batchCount)@Ctype Ctype:data ldc strideC:wide batchCount computeType algo"},
    {"cublas?gemmBatched", "S D C Z",
     "handle:object transa transb m n k alpha:read(1) Aarray:table(batchCount) lda Barray:table(batchCount) ldb "
     "beta:read(1) Carray:table(batchCount) ldc batchCount"},
    {"cublasGemmBatchedEx", "",
     "handle:object transa transb m n k alpha:read(1)@4 Aarray:table(batchCount) Atype lda Barray:table(batchCount) "
     "Btype ldb beta:read(1)@4 Carray:table(batchCount) Ctype ldc batchCount computeType algo"},
    {"cublas?syrk_v2", "S D C Z",
     "handle:object uplo trans n k alpha:read(1) A:read(n,k;lda)^trans lda beta:read(1) C:write(n,n;ldc) ldc"},
    {"cublas?herk_v2", "C Z",
     "handle:object uplo trans n k alpha:read(1)@real A:read(n,k;lda)^trans lda beta:read(1)@real C:write(n,n;ldc) "
     "ldc"},
    {"cublas?symm_v2", "S D C Z",
     "handle:object side uplo m n alpha:read(1) A:read(side?n:m,side?n:m;lda) lda B:read(m,n;ldb) ldb beta:read(1) "
     "C:write(m,n;ldc) ldc"},
    {"cublas?trmm_v2", "S D C Z",
     "handle:object side uplo trans diag m n alpha:read(1) A:read(side?n:m,side?n:m;lda) lda B:read(m,n;ldb) ldb "
     "C:write(m,n;ldc) ldc"},
    {"cublas?trsm_v2", "S D C Z",
     "handle:object side uplo trans diag m n alpha:read(1) A:read(side?n:m,side?n:m;lda) lda B:both(m,n;ldb) ldb"},
    {"cublas?trsmBatched", "S D C Z",
     "handle:object side uplo trans diag m n alpha:read(1) A:table(batchCount) lda B:table(batchCount) ldb batchCount"},
    {"cublas?geam", "S D C Z",
     "handle:object transa transb m n alpha:read(1) A:read(m,n;lda)^transa lda beta:read(1) B:read(m,n;ldb)^transb ldb "
     "C:write(m,n;ldc) ldc"},
    {"cublas?dgmm", "S D C Z",
     "handle:object mode m n A:read(m,n;lda) lda x:read(mode?n:m;incx) incx C:write(m,n;ldc) ldc"},
    {"cublas?tpttr", "S D C Z", "handle:object uplo n AP:read A:write(n,n;lda) lda"},
    {"cublas?trttp", "S D C Z", "handle:object uplo n A:read(n,n;lda) lda AP:write"},
    {"cublas?getrfBatched", "S D C Z",
     "handle:object n A:table(batchSize) lda P:write(n*batchSize)@4 info:write(batchSize)@4 batchSize"},
    {"cublas?getriBatched", "S D C Z",
     "handle:object n A:table(batchSize) lda P:read(n*batchSize)@4 C:table(batchSize) ldc info:write(batchSize)@4 "
     "batchSize"},
    {"cublas?getrsBatched", "S D C Z",
     "handle:object trans n nrhs Aarray:table(batchSize) lda devIpiv:read(n*batchSize)@4 Barray:table(batchSize) ldb "
     "info batchSize"},
    {"cublas?geqrfBatched", "S D C Z",
     "handle:object m n Aarray:table(batchSize) lda TauArray:table(batchSize) info batchSize"},
    {"cublas?gelsBatched", "S D C Z",
     "handle:object trans m n nrhs Aarray:table(batchSize) lda Carray:table(batchSize) ldc info "
     "devInfoArray:write(batchSize)@4 batchSize"},
    {"cublasSetWorkspace_v2", "", "handle:object workspace:sets(bytes)@1 bytes:wide"},
    {"cublasSetStream_v2", "", "handle:ends stream"}, // cuBLAS then uses a workspace of its own again
    {"cublasDestroy_v2", "", "handle:ends"},
    {"cublasLtMatmul", "",
     "handle computeDesc alpha:read(1)@4 A:read Adesc B:read Bdesc beta:read(1)@4 C:read Cdesc D:write Ddesc algo "
     "workspace:both(bytes)@1 bytes:wide stream"},

    // cuRAND
    {"curandGenerate", "", "generator output:write(n)@4 n:wide"},
    {"curandGenerateLongLong", "", "generator output:write(n)@8 n:wide"},
    {"curandGenerateUniform", "", "generator output:write(n)@4 n:wide"},
    {"curandGenerateUniformDouble", "", "generator output:write(n)@8 n:wide"},
    {"curandGenerateNormal", "", "generator output:write(n)@4 n:wide mean:float deviation:float"},
    {"curandGenerateNormalDouble", "", "generator output:write(n)@8 n:wide mean:double deviation:double"},
    {"curandGenerateLogNormal", "", "generator output:write(n)@4 n:wide mean:float deviation:float"},
    {"curandGenerateLogNormalDouble", "", "generator output:write(n)@8 n:wide mean:double deviation:double"},
    {"curandGeneratePoisson", "", "generator output:write(n)@4 n:wide lambda:double"},

    // cuSOLVER, dense matrices
    {"cusolverDn?getrf", "S D C Z", "handle m n A:both(m,n;lda) lda work:both ipiv:write@4 info:write(1)@4"},
    {"cusolverDn?getrs", "S D C Z",
     "handle trans n nrhs A:read(n,n;lda) lda ipiv:read(n)@4 B:both(n,nrhs;ldb) ldb info:write(1)@4"},
    {"cusolverDn?potrf", "S D C Z", "handle uplo n A:both(n,n;lda) lda work:both(lwork) lwork info:write(1)@4"},
    {"cusolverDn?potrfBatched", "S D C Z",
     "handle uplo n Aarray:table(batchSize) lda info:write(batchSize)@4 batchSize"},
    {"cusolverDn?potrs", "S D C Z", "handle uplo n nrhs A:read(n,n;lda) lda B:both(n,nrhs;ldb) ldb info:write(1)@4"},
    {"cusolverDn?potrsBatched", "S D C Z",
     "handle uplo n nrhs Aarray:table(batchSize) lda Barray:table(batchSize) ldb info:write(1)@4 batchSize"},
    {"cusolverDn?potri", "S D C Z", "handle uplo n A:both(n,n;lda) lda work:both(lwork) lwork info:write(1)@4"},
    {"cusolverDn?sytrf", "S D C Z",
     "handle uplo n A:both(n,n;lda) lda ipiv:write(n)@4 work:both(lwork) lwork info:write(1)@4"},
    {"cusolverDn?geqrf", "S D C Z", "handle m n A:both(m,n;lda) lda tau:write work:both(lwork) lwork info:write(1)@4"},
    {"cusolverDn?orgqr", "S D", "handle m n k A:both(m,n;lda) lda tau:read(k) work:both(lwork) lwork info:write(1)@4"},
    {"cusolverDn?ungqr", "C Z", "handle m n k A:both(m,n;lda) lda tau:read(k) work:both(lwork) lwork info:write(1)@4"},
    {"cusolverDn?ormqr", "S D",
     "handle side trans m n k A:read(side?n:m,k;lda) lda tau:read(k) C:both(m,n;ldc) ldc work:both(lwork) lwork "
     "info:write(1)@4"},
    {"cusolverDn?unmqr", "C Z",
     "handle side trans m n k A:read(side?n:m,k;lda) lda tau:read(k) C:both(m,n;ldc) ldc work:both(lwork) lwork "
     "info:write(1)@4"},
    {"cusolverDn?gebrd", "S D C Z",
     "handle m n A:both(m,n;lda) lda D:write@real E:write@real tauq:write taup:write work:both(lwork) lwork "
     "info:write(1)@4"},
    {"cusolverDn?gesvd", "S D C Z",
     "handle jobu jobvt m n A:both(m,n;lda) lda S:write@real U:write ldu VT:write ldvt work:both(lwork) lwork "
     "rwork:both@real info:write(1)@4"},
    {"cusolverDn?gesvdj", "S D C Z",
     "handle jobz econ m n A:both(m,n;lda) lda S:write@real U:write ldu V:write ldv work:both(lwork) lwork "
     "info:write(1)@4 params"},
    {"cusolverDn?gesvdjBatched", "S D C Z",
     "handle jobz m n A:both(m,n*batchSize;lda) lda S:write@real U:write ldu V:write ldv work:both(lwork) lwork "
     "info:write(batchSize)@4 params batchSize"},
    {"cusolverDn?gesvdaStridedBatched", "S D C Z",
     "handle jobz rank m n A:read(m,n;lda;strideA,batchSize) lda strideA:wide S:write@real strideS:wide U:write ldu "
     "strideU:wide V:write ldv strideV:wide work:both(lwork) lwork info:write(batchSize)@4 residual batchSize"},
    {"cusolverDn?syevd", "S D",
     "handle jobz uplo n A:both(n,n;lda) lda W:write(n) work:both(lwork) lwork info:write(1)@4"},
    {"cusolverDn?heevd", "C Z",
     "handle jobz uplo n A:both(n,n;lda) lda W:write(n)@real work:both(lwork) lwork info:write(1)@4"},
    {"cusolverDn?syevj", "S D",
     "handle jobz uplo n A:both(n,n;lda) lda W:write(n) work:both(lwork) lwork info:write(1)@4 params"},
    {"cusolverDn?heevj", "C Z",
     "handle jobz uplo n A:both(n,n;lda) lda W:write(n)@real work:both(lwork) lwork info:write(1)@4 params"},
    {"cusolverDn?syevjBatched", "S D",
     "handle jobz uplo n A:both(n,n*batchSize;lda) lda W:write(n*batchSize) work:both(lwork) lwork "
     "info:write(batchSize)@4 params batchSize"},
    {"cusolverDn?heevjBatched", "C Z",
     "handle jobz uplo n A:both(n,n*batchSize;lda) lda W:write(n*batchSize)@real work:both(lwork) lwork "
     "info:write(batchSize)@4 params batchSize"},
    {"cusolverDnXsyevd", "",
     "handle params jobz uplo n:wide typeA:data A:both(n,n;lda)@typeA lda:wide typeW:data W:write(n)@typeW computeType "
     "work:both(bytes)@1 bytes:wide hostWork hostBytes:wide info:write(1)@4"},
    {"cusolverDnXsyevBatched", "",
     "handle params jobz uplo n:wide typeA:data A:both(n,n*batchSize;lda)@typeA lda:wide typeW:data "
     "W:write(n*batchSize)@typeW computeType work:both(bytes)@1 bytes:wide hostWork hostBytes:wide "
     "info:write(batchSize)@4 batchSize:wide"},
    {"cusolverDnXgeev", "",
     "handle params jobvl jobvr n:wide typeA:data A:both(n,n;lda)@typeA lda:wide typeW:data W:write@typeW typeVL:data "
     "VL:write@typeVL ldvl:wide typeVR:data VR:write@typeVR ldvr:wide computeType work:both(bytes)@1 bytes:wide "
     "hostWork hostBytes:wide info:write(1)@4"},
    {"cusolverDnXpotrf", "",
     "handle params uplo n:wide typeA:data A:both(n,n;lda)@typeA lda:wide computeType work:both(bytes)@1 bytes:wide "
     "hostWork hostBytes:wide info:write(1)@4"},
    {"cusolverDnXpotrs", "",
     "handle params uplo n:wide nrhs:wide typeA:data A:read(n,n;lda)@typeA lda:wide typeB:data "
     "B:both(n,nrhs;ldb)@typeB ldb:wide info:write(1)@4"},
    {"cusolverDnXgetrf", "",
     "handle params m:wide n:wide typeA:data A:both(m,n;lda)@typeA lda:wide ipiv:write@8 computeType "
     "work:both(bytes)@1 bytes:wide hostWork hostBytes:wide info:write(1)@4"},
    {"cusolverDnXgetrs", "",
     "handle params trans n:wide nrhs:wide typeA:data A:read(n,n;lda)@typeA lda:wide ipiv:read(n)@8 typeB:data "
     "B:both(n,nrhs;ldb)@typeB ldb:wide info:write(1)@4"},
    {"cusolverDnXgeqrf", "",
     "handle params m:wide n:wide typeA:data A:both(m,n;lda)@typeA lda:wide typeTau:data tau:write@typeTau computeType "
     "work:both(bytes)@1 bytes:wide hostWork hostBytes:wide info:write(1)@4"},
    {"cusolverDnXgesvd", "",
     "handle params jobu jobvt m:wide n:wide typeA:data A:both(m,n;lda)@typeA lda:wide typeS:data S:write@typeS "
     "typeU:data U:write@typeU ldu:wide typeVT:data VT:write@typeVT ldvt:wide computeType work:both(bytes)@1 "
     "bytes:wide hostWork hostBytes:wide info:write(1)@4"},
    {"cusolverDnXgesvdp", "",
     "handle params jobz econ m:wide n:wide typeA:data A:both(m,n;lda)@typeA lda:wide typeS:data S:write@typeS "
     "typeU:data U:write@typeU ldu:wide typeV:data V:write@typeV ldv:wide computeType work:both(bytes)@1 bytes:wide "
     "hostWork hostBytes:wide info:write(1)@4 residual"},
    {"cusolverDnXsytrs", "",
     "handle uplo n:wide nrhs:wide typeA:data A:read(n,n;lda)@typeA lda:wide ipiv:read(n)@8 typeB:data "
     "B:both(n,nrhs;ldb)@typeB ldb:wide work:both(bytes)@1 bytes:wide hostWork hostBytes:wide info:write(1)@4"},
    {"cusolverDnXtrtri", "",
     "handle uplo diag n:wide typeA:data A:both(n,n;lda)@typeA lda:wide work:both(bytes)@1 bytes:wide hostWork "
     "hostBytes:wide info:write(1)@4"},
    {"cusolverDn?gels", "SS SH SX DD DS DH DX CC CK CY ZZ ZC ZK ZY",
     "handle m n nrhs A:both(m,n;lda) lda B:both(m,nrhs;ldb) ldb X:write(n,nrhs;ldx) ldx work:both(bytes)@1 bytes:wide "
     "iterations info:write(1)@4"},
    {"cusolverDn?gesv", "SS SH SX DD DS DH DX CC CK CY ZZ ZC ZK ZY",
     "handle n nrhs A:both(n,n;lda) lda ipiv:write(n)@4 B:both(n,nrhs;ldb) ldb X:write(n,nrhs;ldx) ldx "
     "work:both(bytes)@1 bytes:wide iterations info:write(1)@4"},

    // cuSOLVER, sparse matrices. The functions for complex numbers that take such a number by value are missing.
    {"cusolverSp?csrlsvqr", "S C",
     "handle m nnz descrA values:read(nnz) rows:read(m+1)@4 columns:read(nnz)@4 b:read(m) tolerance:float reorder "
     "x:write(m) singularity"},
    {"cusolverSp?csrlsvqr", "D Z",
     "handle m nnz descrA values:read(nnz) rows:read(m+1)@4 columns:read(nnz)@4 b:read(m) tolerance:double reorder "
     "x:write(m) singularity"},
    {"cusolverSp?csrlsvchol", "S C",
     "handle m nnz descrA values:read(nnz) rows:read(m+1)@4 columns:read(nnz)@4 b:read(m) tolerance:float reorder "
     "x:write(m) singularity"},
    {"cusolverSp?csrlsvchol", "D Z",
     "handle m nnz descrA values:read(nnz) rows:read(m+1)@4 columns:read(nnz)@4 b:read(m) tolerance:double reorder "
     "x:write(m) singularity"},
    {"cusolverSpScsreigvsi", "",
     "handle m nnz descrA values:read(nnz)@4 rows:read(m+1)@4 columns:read(nnz)@4 mu0:float x0:read(m)@4 maxite "
     "tolerance:float mu:write(1)@4 x:write(m)@4"},
    {"cusolverSpDcsreigvsi", "",
     "handle m nnz descrA values:read(nnz)@8 rows:read(m+1)@4 columns:read(nnz)@4 mu0:double x0:read(m)@8 maxite "
     "tolerance:double mu:write(1)@8 x:write(m)@8"},

    // cuSPARSE, the functions with descriptors
    {"cusparse?SpVec", "Create CreateConst",
     "vector:new size:wide nnz:wide indices:indexes(nnz)@indexType values:holds(nnz)@valueType indexType:index base "
     "valueType:data"},
    {"cusparse?DnVec", "Create CreateConst", "vector:new size:wide values:holds(size)@valueType valueType:data"},
    {"cusparse?Csr", "Create CreateConst",
     "matrix:new rows:wide columns:wide nnz:wide rowOffsets:indexes(rows+1)@offsetType "
     "columnIndices:indexes(nnz)@indexType values:holds(nnz)@valueType offsetType:index indexType:index base "
     "valueType:data"},
    {"cusparse?Csc", "Create CreateConst",
     "matrix:new rows:wide columns:wide nnz:wide columnOffsets:indexes(columns+1)@offsetType "
     "rowIndices:indexes(nnz)@indexType values:holds(nnz)@valueType offsetType:index indexType:index base "
     "valueType:data"},
    {"cusparse?Coo", "Create CreateConst",
     "matrix:new rows:wide columns:wide nnz:wide rowIndices:indexes(nnz)@indexType "
     "columnIndices:indexes(nnz)@indexType "
     "values:holds(nnz)@valueType indexType:index base valueType:data"},
    {"cusparse?Bsr", "Create CreateConst",
     "matrix:new rows:wide columns:wide nnz:wide rowBlock:wide columnBlock:wide rowOffsets:indexes(rows+1)@offsetType "
     "columnIndices:indexes(nnz)@indexType values:holds@valueType offsetType:index indexType:index base valueType:data "
     "order"},
    {"cusparse?DnMat", "Create CreateConst",
     "matrix:new rows:wide columns:wide leading:wide values:holds(rows,columns;leading)^order@valueType valueType:data "
     "order:order"},
    {"cusparseDestroySpVec", "", "vector:ends"},
    {"cusparseDestroyDnVec", "", "vector:ends"},
    {"cusparseDestroySpMat", "", "matrix:ends"},
    {"cusparseDestroyDnMat", "", "matrix:ends"},
    {"cusparseSpVecSetValues", "", "vector:repoints values:holds"},
    {"cusparseDnVecSetValues", "", "vector:repoints values:holds"},
    {"cusparseSpMatSetValues", "", "matrix:repoints values:holds"},
    {"cusparseDnMatSetValues", "", "matrix:repoints values:holds"},
    {"cusparseCsrSetPointers", "", "matrix:repoints rowOffsets:indexes columnIndices:indexes values:holds"},
    {"cusparseCscSetPointers", "", "matrix:repoints columnOffsets:indexes rowIndices:indexes values:holds"},
    {"cusparseCooSetPointers", "", "matrix:repoints rowIndices:indexes columnIndices:indexes values:holds"},
    {"cusparseDnMatSetStridedBatch", "", "matrix:resizes batchCount stride:wide"},
    {"cusparseCsrSetStridedBatch", "", "matrix:resizes batchCount offsetStride:wide columnStride:wide"},
    {"cusparseCooSetStridedBatch", "", "matrix:resizes batchCount stride:wide"},
    {"cusparseSpMV", "",
     "handle opA alpha:read(1)@computeType A:reads x:reads beta:read(1)@computeType y:writes computeType:data "
     "algorithm buffer:both"},
    {"cusparseSpMV_preprocess", "",
     "handle opA alpha:read(1)@computeType A:reads x:reads beta:read(1)@computeType y:writes computeType:data "
     "algorithm buffer:both"},
    {"cusparseSpMM", "",
     "handle opA opB alpha:read(1)@computeType A:reads B:reads beta:read(1)@computeType C:writes computeType:data "
     "algorithm buffer:both"},
    {"cusparseSpMM_preprocess", "",
     "handle opA opB alpha:read(1)@computeType A:reads B:reads beta:read(1)@computeType C:writes computeType:data "
     "algorithm buffer:both"},
    {"cusparseSDDMM", "",
     "handle opA opB alpha:read(1)@computeType A:reads B:reads beta:read(1)@computeType C:writes computeType:data "
     "algorithm buffer:both"},
    {"cusparseSDDMM_preprocess", "",
     "handle opA opB alpha:read(1)@computeType A:reads B:reads beta:read(1)@computeType C:writes computeType:data "
     "algorithm buffer:both"},
    {"cusparseSpVV", "", "handle opX x:reads y:reads result:write(1)@computeType computeType:data buffer:both"},
    {"cusparseGather", "", "handle y:reads x:writes"},
    {"cusparseScatter", "", "handle x:reads y:writes"},
    {"cusparseAxpby", "", "handle alpha:read(1)@4 x:reads beta:read(1)@4 y:writes"},
    {"cusparseSparseToDense", "", "handle A:reads B:writes algorithm buffer:both"},
    {"cusparseDenseToSparse_analysis", "", "handle A:reads B:fills algorithm buffer:both"},
    {"cusparseDenseToSparse_convert", "", "handle A:reads B:fills algorithm buffer:both"},
    {"cusparseSpGEMM_workEstimation", "",
     "handle opA opB alpha:read(1)@computeType A:reads B:reads beta:read(1)@computeType C:fills computeType:data "
     "algorithm state:object "
     "bufferSize buffer:keeps"},
    {"cusparseSpGEMM_compute", "",
     "handle opA opB alpha:read(1)@computeType A:reads B:reads beta:read(1)@computeType C:fills computeType:data "
     "algorithm state:object "
     "bufferSize buffer:keeps"},
    {"cusparseSpGEMM_copy", "",
     "handle opA opB alpha:read(1)@computeType A:reads B:reads beta:read(1)@computeType C:fills computeType:data "
     "algorithm state:object"},
    {"cusparseSpGEMM_destroyDescr", "", "state:ends"},
    {"cusparseSpSV_analysis", "",
     "handle opA alpha:read(1)@computeType A:reads x:reads y:writes computeType:data algorithm state:object "
     "buffer:keeps"},
    {"cusparseSpSV_solve", "",
     "handle opA alpha:read(1)@computeType A:reads x:reads y:writes computeType:data algorithm state:object"},
    {"cusparseSpSV_destroyDescr", "", "state:ends"},
    {"cusparseSpSM_analysis", "",
     "handle opA opB alpha:read(1)@computeType A:reads B:reads C:writes computeType:data algorithm state:object "
     "buffer:keeps"},
    {"cusparseSpSM_solve", "",
     "handle opA opB alpha:read(1)@computeType A:reads B:reads C:writes computeType:data algorithm state:object"},
    {"cusparseSpSM_destroyDescr", "", "state:ends"},

    // cuSPARSE, the functions with pointers
    {"cusparse?nnz", "S D C Z",
     "handle direction m n descrA A:read(m,n;lda) lda nnzPerRowColumn:write(direction?n:m)@4 nnzTotal:write(1)@4"},
    {"cusparseSnnz_compress", "",
     "handle m descr values:read@4 rows:read(m+1)@4 nnzPerRow:write(m)@4 nnzC:write(1)@4 tolerance:float"},
    {"cusparseDnnz_compress", "",
     "handle m descr values:read@8 rows:read(m+1)@4 nnzPerRow:write(m)@4 nnzC:write(1)@4 tolerance:double"},
    {"cusparseScsr2csr_compress", "",
     "handle m n descrA valuesA:read(nnzA)@4 columnsA:read(nnzA)@4 rowsA:read(m+1)@4 nnzA nnzPerRow:read(m)@4 "
     "valuesC:write@4 columnsC:write@4 rowsC:write(m+1)@4 tolerance:float"},
    {"cusparseDcsr2csr_compress", "",
     "handle m n descrA valuesA:read(nnzA)@8 columnsA:read(nnzA)@4 rowsA:read(m+1)@4 nnzA nnzPerRow:read(m)@4 "
     "valuesC:write@8 columnsC:write@4 rowsC:write(m+1)@4 tolerance:double"},
    {"cusparse?csrgeam2", "S D C Z",
     "handle m n alpha:read(1) descrA nnzA valuesA:read(nnzA) rowsA:read(m+1)@4 columnsA:read(nnzA)@4 beta:read(1) "
     "descrB nnzB valuesB:read(nnzB) rowsB:read(m+1)@4 columnsB:read(nnzB)@4 descrC valuesC:write rowsC:both(m+1)@4 "
     "columnsC:write@4 buffer:both"},
    {"cusparseXcsrgeam2Nnz", "",
     "handle m n descrA nnzA rowsA:read(m+1)@4 columnsA:read(nnzA)@4 descrB nnzB rowsB:read(m+1)@4 "
     "columnsB:read(nnzB)@4 descrC rowsC:write(m+1)@4 nnzTotal:write(1)@4 workspace:both"},
    {"cusparseCsr2cscEx2", "",
     "handle m n nnz cscOfValues:read(nnz)@valueType rows:read(m+1)@4 columns:read(nnz)@4 "
     "newValues:write(nnz)@valueType newOffsets:write(n+1)@4 newIndices:write(nnz)@4 valueType:data copyValues base "
     "algorithm buffer:both"},
    {"cusparseXcoo2csr", "", "handle rowIndices:read(nnz)@4 nnz m rowOffsets:write(m+1)@4 base"},
    {"cusparseXcsr2coo", "", "handle rowOffsets:read(m+1)@4 nnz m rowIndices:write(nnz)@4 base"},
    {"cusparseXcoosortByRow", "", "handle m n nnz rows:both(nnz)@4 columns:both(nnz)@4 P:both(nnz)@4 buffer:both"},
    {"cusparseXcoosortByColumn", "", "handle m n nnz rows:both(nnz)@4 columns:both(nnz)@4 P:both(nnz)@4 buffer:both"},
    {"cusparseXcsrsort", "",
     "handle m n nnz descrA rowOffsets:read(m+1)@4 columns:both(nnz)@4 P:both(nnz)@4 buffer:both"},
    {"cusparseXcscsort", "",
     "handle m n nnz descrA columnOffsets:read(n+1)@4 rows:both(nnz)@4 P:both(nnz)@4 buffer:both"},
    {"cusparseCreateIdentityPermutation", "", "handle n p:write(n)@4"},
    {"cusparse?gtsv2", "S D C Z", "handle m n dl:read(m) d:read(m) du:read(m) B:both(m,n;ldb) ldb buffer:both"},
    {"cusparse?gtsv2_nopivot", "S D C Z", "handle m n dl:read(m) d:read(m) du:read(m) B:both(m,n;ldb) ldb buffer:both"},
    {"cusparse?gtsv2StridedBatch", "S D C Z",
     "handle m dl:read(m,batchCount;batchStride) d:read(m,batchCount;batchStride) du:read(m,batchCount;batchStride) "
     "x:both(m,batchCount;batchStride) batchCount batchStride buffer:both"},
    {"cusparse?gtsvInterleavedBatch", "S D C Z",
     "handle algorithm m dl:both(m*batchCount) d:both(m*batchCount) du:both(m*batchCount) x:both(m*batchCount) "
     "batchCount buffer:both"},
    {"cusparse?gpsvInterleavedBatch", "S D C Z",
     "handle algorithm m ds:both(m*batchCount) dl:both(m*batchCount) d:both(m*batchCount) du:both(m*batchCount) "
     "dw:both(m*batchCount) x:both(m*batchCount) batchCount buffer:both"},
    {"cusparse?csric02", "S D C Z",
     "handle m nnz descrA values:both(nnz) rows:read(m+1)@4 columns:read(nnz)@4 info policy buffer:both"},
    {"cusparse?csric02_analysis", "S D C Z",
     "handle m nnz descrA values:read(nnz) rows:read(m+1)@4 columns:read(nnz)@4 info policy buffer:both"},
    {"cusparse?csrilu02", "S D C Z",
     "handle m nnz descrA values:both(nnz) rows:read(m+1)@4 columns:read(nnz)@4 info policy buffer:both"},
    {"cusparse?csrilu02_analysis", "S D C Z",
     "handle m nnz descrA values:read(nnz) rows:read(m+1)@4 columns:read(nnz)@4 info policy buffer:both"},
    {"cusparse?bsric02", "S D C Z",
     "handle direction mb nnzb descrA values:both rows:read(mb+1)@4 columns:read(nnzb)@4 blockDim info policy "
     "buffer:both"},
    {"cusparse?bsric02_analysis", "S D C Z",
     "handle direction mb nnzb descrA values:read rows:read(mb+1)@4 columns:read(nnzb)@4 blockDim info policy "
     "buffer:both"},
    {"cusparse?bsrilu02", "S D C Z",
     "handle direction mb nnzb descrA values:both rows:read(mb+1)@4 columns:read(nnzb)@4 blockDim info policy "
     "buffer:both"},
    {"cusparse?bsrilu02_analysis", "S D C Z",
     "handle direction mb nnzb descrA values:read rows:read(mb+1)@4 columns:read(nnzb)@4 blockDim info policy "
     "buffer:both"},
    {"cusparse?bsrmv", "S D C Z",
     "handle direction transA mb nb nnzb alpha:read(1) descrA values:read rows:read(mb+1)@4 columns:read(nnzb)@4 "
     "blockDim x:read beta:read(1) y:write"},
    {"cusparse?bsrmm", "S D C Z",
     "handle direction transA transB mb n kb nnzb alpha:read(1) descrA values:read rows:read(mb+1)@4 "
     "columns:read(nnzb)@4 blockDim B:read ldb beta:read(1) C:write ldc"},
    {"cusparse?bsrsv2_analysis", "S D C Z",
     "handle direction transA mb nnzb descrA values:read rows:read(mb+1)@4 columns:read(nnzb)@4 blockDim info:object "
     "policy buffer:keeps"},
    {"cusparse?bsrsv2_solve", "S D C Z",
     "handle direction transA mb nnzb alpha:read(1) descrA values:read rows:read(mb+1)@4 columns:read(nnzb)@4 blockDim "
     "info:object f:read x:write policy buffer:both"},
    {"cusparse?bsrsm2_analysis", "S D C Z",
     "handle direction transA transX mb n nnzb descrA values:read rows:read(mb+1)@4 columns:read(nnzb)@4 blockDim "
     "info:object policy buffer:keeps"},
    {"cusparse?bsrsm2_solve", "S D C Z",
     "handle direction transA transX mb n nnzb alpha:read(1) descrA values:read rows:read(mb+1)@4 "
     "columns:read(nnzb)@4 blockDim info:object B:read ldb X:write ldx policy buffer:both"},
    {"cusparseDestroyBsrsv2Info", "", "info:ends"},
    {"cusparseDestroyBsrsm2Info", "", "info:ends"},

    // cuFFT. The transform from complex to real numbers may write into its input.
    {"cufftMakePlan1d", "", "plan n type batch size", Extra::fft_plan_1d},
    {"cufftMakePlanMany", "", "plan rank n inembed istride idist onembed ostride odist type batch size",
     Extra::fft_plan_many},
    {"cufftXtMakePlanMany", "",
     "plan rank n inembed istride:wide idist:wide inputType onembed ostride:wide odist:wide outputType batch:wide size "
     "executionType",
     Extra::fft_plan_many_wide},
    {"cufftSetWorkArea", "", "plan:object workArea:sets"},
    {"cufftDestroy", "", "plan:ends"},
    {"cufftExecC2C", "", "plan:object input:read output:write direction", Extra::fft},
    {"cufftExecZ2Z", "", "plan:object input:read output:write direction", Extra::fft},
    {"cufftExecR2C", "", "plan:object input:read output:write", Extra::fft},
    {"cufftExecD2Z", "", "plan:object input:read output:write", Extra::fft},
    {"cufftExecC2R", "", "plan:object input:both output:write", Extra::fft},
    {"cufftExecZ2D", "", "plan:object input:both output:write", Extra::fft},
    {"cufftXtExec", "", "plan:object input:both output:write direction", Extra::fft},

    // NCCL. The root of a group alone reads what is sent to all, or writes what is sent by all.
    {"ncclAllReduce", "",
     "send:read(count)@type receive:write(count)@type count:wide type:nccl operation communicator stream",
     Extra::grouped},
    {"ncclReduce", "",
     "send:read(count)@type receive:maybe(count)@type count:wide type:nccl operation root communicator stream",
     Extra::grouped},
    {"ncclBroadcast", "",
     "send:maybe(count)@type receive:write(count)@type count:wide type:nccl root communicator stream", Extra::grouped},
    {"ncclBcast", "", "buffer:maybe(count)@type count:wide type:nccl root communicator stream", Extra::grouped},
    {"ncclAllGather", "", "send:read(count)@type receive:write count:wide type:nccl communicator stream",
     Extra::grouped},
    {"ncclReduceScatter", "", "send:read receive:write(count)@type count:wide type:nccl operation communicator stream",
     Extra::grouped},
    {"ncclAlltoAll", "", "send:read receive:write count:wide type:nccl communicator stream", Extra::grouped},
    {"ncclGather", "", "send:read(count)@type receive:maybe count:wide type:nccl root communicator stream",
     Extra::grouped},
    {"ncclScatter", "", "send:maybe receive:write(count)@type count:wide type:nccl root communicator stream",
     Extra::grouped},
    {"ncclSend", "", "send:read(count)@type count:wide type:nccl peer communicator stream", Extra::grouped},
    {"ncclRecv", "", "receive:write(count)@type count:wide type:nccl peer communicator stream", Extra::grouped},
    {"ncclGroupStart", "", "", Extra::group_start},
    {"ncclGroupEnd", "", "", Extra::group_end},

    // cuTENSOR
    {"cutensorContract", "",
     "handle plan alpha A:read B:read beta C:read D:write workspace:both(bytes)@1 bytes:wide stream"},
    {"cutensorReduce", "", "handle plan alpha A:read beta C:read D:write workspace:both(bytes)@1 bytes:wide stream"},
    {"cutensorPermute", "", "handle plan alpha A:read B:write stream"},
    {"cutensorElementwiseBinaryExecute", "", "handle plan alpha A:read gamma C:read D:write stream"},
    {"cutensorElementwiseTrinaryExecute", "", "handle plan alpha A:read beta B:read gamma C:read D:write stream"},

    // Thrust and CUB, as CuPy has compiled them: C++ functions that the modules of CuPy export. `shape` is a vector of
    // the C++ library.
    {"_Z11thrust_sortiPvPmRKSt6vectorIlSaIlEElS_", "",
     "type:cupy data:both(shape)@type keys:both(shape)@8 shape:vector stream memory"},
    {"_Z14thrust_lexsortiPmPvmmlS0_", "",
     "type:cupy indices:write(n)@8 keys:read(k*n)@type k:wide n:wide stream memory"},
    {"_Z14thrust_argsortiPmPvS0_RKSt6vectorIlSaIlEElS0_", "",
     "type:cupy indices:write(shape)@8 data:both(shape)@type keys:both(shape)@8 shape:vector stream memory"},
    {"_Z17cub_device_reducePvRmS_S_iP11CUstream_stii", "",
     "workspace:both workspaceSize input:read(n)@type output:write n stream operation type:cupy"},
    {"_Z27cub_device_segmented_reducePvRmS_S_iiP11CUstream_stii", "",
     "workspace:both workspaceSize input:read(segments*size)@type output:write segments size stream operation "
     "type:cupy"},
    {"_Z15cub_device_scanPvRmS_S_iP11CUstream_stii", "",
     "workspace:both workspaceSize input:read(n)@type output:write(n)@type n stream operation type:cupy"},
    {"_Z26cub_device_histogram_rangePvRmS_S_iS_mP11CUstream_sti", "",
     "workspace:both workspaceSize input:read(n)@type output:write levels levelBounds:read n:wide stream type:cupy"},
    {"_Z25cub_device_histogram_evenPvRmS_S_iiimP11CUstream_sti", "",
     "workspace:both workspaceSize input:read(n)@type output:write levels lower upper n:wide stream type:cupy"},
};

inline constexpr std::size_t row_count = sizeof(rows) / sizeof(*rows);

// A function of the table: a row with one of its types.
struct Function {
    std::uint16_t row;
    std::uint16_t type; // the place of the type in Row::types
    std::uint16_t arguments;
    std::uint32_t floats, doubles; // bit n: the argument n is passed as such a number
};

namespace detail {

constexpr std::size_t words_in(std::string_view text) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size(); ++at)
        count += text[at] != ' ' && (at == 0 || text[at - 1] == ' ');
    return count;
}

constexpr std::size_t types_of(const Row &row) { return row.types.empty() ? 1 : words_in(row.types); }

constexpr std::size_t count_functions() {
    std::size_t count = 0;
    for (const Row &row : rows)
        count += types_of(row);
    return count;
}

constexpr bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

} // namespace detail

inline constexpr std::size_t function_count = detail::count_functions();

namespace detail {

constexpr std::array<Function, function_count> make_functions() {
    std::array<Function, function_count> functions{};
    std::size_t index = 0;
    for (std::size_t row = 0; row < row_count; ++row) {
        Function made{std::uint16_t(row), 0, 0, 0, 0};
        const std::string_view text = rows[row].arguments;
        for (std::size_t begin = 0; begin < text.size();) {
            std::size_t end = begin;
            while (end < text.size() && text[end] != ' ')
                ++end;
            const std::string_view word = text.substr(begin, end - begin);
            if (ends_with(word, ":float"))
                made.floats |= 1u << made.arguments;
            if (ends_with(word, ":double"))
                made.doubles |= 1u << made.arguments;
            made.arguments += !word.empty();
            begin = end + 1;
        }
        for (std::size_t type = 0; type < types_of(rows[row]); ++type) {
            made.type = std::uint16_t(type);
            functions[index++] = made;
        }
    }
    return functions;
}

} // namespace detail

inline constexpr std::array<Function, function_count> functions = detail::make_functions();

} // namespace tcuda::library_calls
