package etcd

import (
	"context"

	"google.golang.org/grpc"
)

// streams ends the watches of clients when ended does. Without it, closing the
// member waits for seconds for watches that no one will end: the clients are in
// this process and go with it.
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

// Context implements grpc.ServerStream.
func (s stream) Context() context.Context { return s.ctx }
