package simulated

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// Timeouts of forwarded ports, our choice.
const (
	forwardIdle   = 10 * time.Minute
	forwardCreate = 30 * time.Second
)

// forward serves a connection to a port of a Pod until it is closed. [Server.Start] sets one in the [tenant] of a
// cluster with etcd members.
type forward func(ctx context.Context, namespace, pod string, port int32, conn net.Conn) error

// forwards is the portforward subresource of Pods. Controllers reach the etcd members of a simulated control plane
// through it, as in a real cluster.
type forwards struct{ pods rest.Getter }

var _ rest.Connecter = forwards{}

func (forwards) New() runtime.Object { return &core.PodPortForwardOptions{} }

func (forwards) Destroy() {}

func (forwards) ConnectMethods() []string { return []string{http.MethodGet, http.MethodPost} }

func (forwards) NewConnectOptions() (runtime.Object, bool, string) {
	return &core.PodPortForwardOptions{}, false, ""
}

func (f forwards) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	t := tenantFrom(ctx)
	if t == nil {
		return nil, errNoCluster
	}
	o, err := f.pods.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pod, ok := o.(*core.Pod)
	if !ok {
		return nil, fmt.Errorf("the store of pods has a %T", o)
	}
	of, ok := options.(*core.PodPortForwardOptions)
	if !ok {
		return nil, fmt.Errorf("the options of a forwarded port are a %T", options)
	}
	ports, err := portforward.BuildV4Options(of.Ports)
	if err != nil {
		return nil, err
	}
	to := forwarder{ctx: ctx, tenant: t, pod: pod}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		portforward.ServePortForward(w, r, to, name, string(pod.UID), ports, forwardIdle, forwardCreate, portforward.SupportedProtocols)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case t.Forward == nil || pod.Status.Phase != core.PodRunning:
			responder.Error(fmt.Errorf("the Pod %s does not run", name))
		case wsstream.IsWebSocketRequestWithTunnelingProtocol(r):
			proxy.NewTunnelingHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				serve(&upgradeWriter{ResponseWriter: w, header: http.Header{}}, r)
			})).ServeHTTP(w, r)
		default:
			serve(w, r)
		}
	}), nil
}

// upgradeWriter writes the response to an upgrade request to the connection, where a tunnel expects it, like a proxy
// that received the response from a kubelet.
type upgradeWriter struct {
	http.ResponseWriter
	header http.Header
	status int
}

func (u *upgradeWriter) Header() http.Header { return u.header }

func (u *upgradeWriter) WriteHeader(status int) {
	if u.status = status; status != http.StatusSwitchingProtocols {
		maps.Copy(u.ResponseWriter.Header(), u.header)
		u.ResponseWriter.WriteHeader(status)
	}
}

func (u *upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil || u.status != http.StatusSwitchingProtocols {
		return conn, buffer, err
	}
	if buffer == nil {
		buffer = bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	}
	answer := http.Response{StatusCode: u.status, ProtoMajor: 1, ProtoMinor: 1, Header: u.header}
	return conn, buffer, answer.Write(conn)
}

// forwarder connects streams to a Pod.
type forwarder struct {
	ctx    context.Context
	tenant *tenant
	pod    *core.Pod
}

func (f forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	ours, theirs := net.Pipe()
	defer func() { _ = ours.Close() }()
	served := make(chan error, 1)
	go func() {
		served <- f.tenant.Forward(f.ctx, f.pod.Namespace, f.pod.Name, port, theirs)
		_ = theirs.Close() // both ends are done
	}()
	go func() {
		_, _ = io.Copy(ours, stream)
		_ = ours.Close() // the client has disconnected
	}()
	_, err := io.Copy(stream, ours)
	if errors.Is(err, io.ErrClosedPipe) {
		err = nil
	}
	return errors.Join(err, <-served)
}
