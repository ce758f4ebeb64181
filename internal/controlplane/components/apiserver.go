package components

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// shutdownWait limits how long a stopping server waits for long-running requests such as exec. Watches end at
// once, because clients restart them when the server is back.
const shutdownWait = 2 * time.Second

// APIServer is a configured kube-apiserver of a management or workload cluster that is not running yet. The package is
// also compiled with other Kubernetes versions, so each imported API must exist in all of them (doc.go).
type APIServer struct {
	options  *options.ServerRunOptions
	listener net.Listener
	tune     TuneAPIServer
	// clientCert and clientKey are the files for calls of conversion webhooks.
	clientCert, clientKey string
}

// TuneAPIServer modifies the completed configuration of the generic server before the server is built. It may be nil.
// Package controlplane adds the limits of tenants to a management cluster with it.
type TuneAPIServer func(*genericapiserver.Config)

// NewAPIServer parses args, which are kube-apiserver flags, for a server on the listener. This process must be able to
// connect to the listener's address, because the server sends requests to itself. [New] and package controlplane call
// it.
func NewAPIServer(args []string, listener net.Listener, tune TuneAPIServer) (*APIServer, error) {
	o := options.NewServerRunOptions()
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}
	o.SecureServing.Listener = listener
	o.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = shutdownWait
	return &APIServer{options: o, listener: listener, tune: tune}, nil
}

// IdentifyToConversions makes the server present a client certificate to conversion webhooks that request
// one. kube-apiserver has a configuration file for this only for admission webhooks
// (--admission-control-config-file). Package controlplane calls it for the management cluster.
func (s *APIServer) IdentifyToConversions(certFile, keyFile string) {
	s.clientCert, s.clientKey = certFile, keyFile
}

// ApplyFeatureGates applies the parsed feature gates and versions of all components of the process. It must be called
// once, after the flags of all components are parsed and before any of them runs. [New] calls it, and package
// controlplane for the management cluster.
func (s *APIServer) ApplyFeatureGates() error {
	return s.options.GenericServerRunOptions.ComponentGlobalsRegistry.Set()
}

// Run serves until ctx ends or the server fails. It calls started once, before the server is ready, with a
// client configuration of group system:masters that is valid while the server runs.
func (s *APIServer) Run(ctx context.Context, started func(loopback *rest.Config)) error {
	chain, err := s.build(ctx)
	if err != nil {
		return fmt.Errorf("start kube-apiserver: %w", err)
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("start kube-apiserver: %w", err)
	}
	started(rest.CopyConfig(chain.GenericAPIServer.LoopbackClientConfig))
	return prepared.Run(ctx)
}

func (s *APIServer) build(ctx context.Context) (*aggregator.APIAggregator, error) {
	completed, err := s.options.Complete(ctx)
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, err
	}
	if !s.options.Etcd.EnableWatchCache {
		bookmark(config)
	}
	if s.clientCert != "" {
		extra := &config.ApiExtensions.ExtraConfig
		extra.AuthResolverWrapper = s.identified(extra.AuthResolverWrapper)
	}
	if s.tune != nil {
		s.tune(config.KubeAPIs.ControlPlane.Generic)
		s.tune(&config.ApiExtensions.GenericConfig.Config)
		s.tune(&config.Aggregator.GenericConfig.Config)
	}
	hooks, err := extractTimedHooks(config)
	if err != nil {
		return nil, err
	}
	all, err := config.Complete()
	if err != nil {
		return nil, err
	}
	chain, err := app.CreateServerChain(all)
	if err != nil {
		return nil, err
	}
	if err := addRetriedHooks(hooks, config, chain.GenericAPIServer); err != nil {
		return nil, err
	}
	chain.GenericAPIServer.ShutdownTimeout = shutdownWait
	return chain, nil
}

// identified adds the client certificate to calls of webhooks at a URL. Webhooks behind a Service belong to
// other programs.
func (s *APIServer) identified(inner webhook.AuthenticationInfoResolverWrapper) webhook.AuthenticationInfoResolverWrapper {
	return func(delegate webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		resolver := inner(delegate)
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
				c, err := resolver.ClientConfigFor(hostPort)
				if err != nil || c.BearerToken != "" { // the server itself
					return c, err
				}
				c = rest.CopyConfig(c)
				c.CertFile, c.KeyFile = s.clientCert, s.clientKey
				return c, nil
			},
			ClientConfigForServiceFunc: resolver.ClientConfigForService,
		}
	}
}
