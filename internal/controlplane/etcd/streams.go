package etcd

import (
	"context"

	"google.golang.org/grpc"
)

// streams is a gRPC option of the member that cancels the watches of clients when ended is done. Otherwise closing the
// member would wait several seconds for watches of clients in this process, which are not canceled before. [Start]
// passes it to the member.
func streams(ended context.Context) grpc.ServerOption {
	return grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		defer context.AfterFunc(ended, cancel)()
		return handle(srv, stream{ServerStream: s, ctx: ctx})
	})
}

type stream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s stream) Context() context.Context { return s.ctx }
