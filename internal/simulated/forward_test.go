package simulated_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	workloadportforward "github.com/slipwayhq/slipway/internal/workload/portforward"
)

// Members of a simulated etcd are reached through the api server, by each protocol of forwarded ports.
func TestEtcdThroughPods(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	members := authority(t)
	spec := w.spec(t, "one")
	spec.EtcdCert, spec.EtcdKey = members.CertPEM, members.KeyPEM
	if err := w.Start("one", spec); err != nil {
		t.Fatal(err)
	}
	config := access(t, spec.Address, w.ca, w.ca, "kubernetes-admin", "system:masters")
	c := clientOf(t, config)
	if _, err := c.CoreV1().Nodes().Create(ctx, node("cp-1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd-cp-1", "kube-apiserver-cp-1", "etcd-gone"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: corev1.PodSpec{
			NodeName: "cp-1", HostNetwork: true, Containers: []corev1.Container{{Name: "x", Image: "x"}},
		}}
		if _, err := c.CoreV1().Pods("kube-system").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "Pod "+name+" runs", func() bool {
			got, err := c.CoreV1().Pods("kube-system").Get(ctx, name, metav1.GetOptions{})
			return err == nil && got.Status.Phase == corev1.PodRunning
		})
	}
	if joined, err := w.Etcd(spec.Cluster).Join("cp-1", "100.64.0.1"); err != nil || !joined {
		t.Fatal(joined, err)
	}
	streams := func(dialer func(*rest.Config, string) (httpstream.Dialer, error)) func(pod, port string) (net.Conn, error) {
		return func(pod, port string) (net.Conn, error) {
			d, err := dialer(config, pod)
			if err != nil {
				return nil, err
			}
			return open(d, port)
		}
	}
	for name, dialPort := range map[string]func(pod, port string) (net.Conn, error){
		"SPDY": streams(bySPDY), "SPDY in a WebSocket": streams(byWebsocket), "channels of a WebSocket": byChannels(t, config),
	} {
		t.Run(name, func(t *testing.T) {
			dial := func(pod string) (net.Conn, error) { return dialPort(pod, "2379") }
			answersAsAPIServer(t, w.ca.CertPEM, func() (net.Conn, error) { return dialPort("kube-apiserver-cp-1", "6443") })
			etcd := etcdClient(t, members, func() (net.Conn, error) { return dial("etcd-cp-1") })
			if conn, err := dial("etcd-cp-1"); err != nil {
				t.Fatal(err)
			} else {
				_ = conn.Close()
			}
			within, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			list, err := etcd.MemberList(within)
			if err != nil || len(list.Members) != 1 || list.Members[0].Name != "cp-1" {
				t.Errorf("got %v, %v", list, err)
			}
			for _, pod := range []string{"kube-apiserver-cp-1", "etcd-gone"} {
				silent := etcdClient(t, members, func() (net.Conn, error) { return dial(pod) })
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				if list, err := silent.MemberList(short); err == nil {
					t.Errorf("Pod %s answers as etcd: %v", pod, list)
				}
				cancel()
			}
		})
	}
}

// answersAsAPIServer fails the test unless an api server with a certificate of the authority answers.
func answersAsAPIServer(t *testing.T, authority []byte, dial func() (net.Conn, error)) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "kubernetes"},
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return dial() },
	}}
	defer c.CloseIdleConnections()
	for range 2 { // over one connection
		answer, err := c.Get("https://kubernetes/livez")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
			t.Errorf("the API server answers %s", answer.Status)
		}
	}
}

func forwardURL(config *rest.Config, pod string) *url.URL {
	return &url.URL{Scheme: "https", Host: strings.TrimPrefix(config.Host, "https://"), Path: "/api/v1/namespaces/kube-system/pods/" + pod + "/portforward"}
}

func bySPDY(config *rest.Config, pod string) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, forwardURL(config, pod)), nil
}

func byWebsocket(config *rest.Config, pod string) (httpstream.Dialer, error) {
	return portforward.NewSPDYOverWebsocketDialer(forwardURL(config, pod), config)
}

// byChannels connects as the controllers do.
func byChannels(t *testing.T, config *rest.Config) func(pod, port string) (net.Conn, error) {
	t.Helper()
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	upgrades, err := workloadportforward.Transport(config, &http.Transport{TLSClientConfig: secured})
	if err != nil {
		t.Fatal(err)
	}
	return func(pod, port string) (net.Conn, error) {
		number, err := strconv.Atoi(port)
		if err != nil {
			return nil, err
		}
		return workloadportforward.Dial(t.Context(), upgrades, config.Host, workloadportforward.Target{Namespace: "kube-system", Pod: pod, Port: number})
	}
}

// stream is a forwarded connection.
type stream struct {
	httpstream.Stream
	net.Conn // for what a stream has not
	all      httpstream.Connection
}

func (s stream) Read(p []byte) (int, error)  { return s.Stream.Read(p) }
func (s stream) Write(p []byte) (int, error) { return s.Stream.Write(p) }
func (s stream) Close() error                { return s.all.Close() }

func (stream) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (stream) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (stream) SetDeadline(time.Time) error      { return nil }
func (stream) SetReadDeadline(time.Time) error  { return nil }
func (stream) SetWriteDeadline(time.Time) error { return nil }

func open(d httpstream.Dialer, port string) (net.Conn, error) {
	conn, _, err := d.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, "1")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	if _, err := conn.CreateStream(headers); err != nil {
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	return stream{Stream: data, all: conn}, nil
}

func etcdClient(t *testing.T, authority pki.Pair, dial func() (net.Conn, error)) *clientv3.Client {
	t.Helper()
	leaf, err := authority.Issue(pki.Leaf{User: "client", Client: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.X509KeyPair(leaf.CertPEM, leaf.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Cert)
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://cp-1:2379"}, Logger: zap.NewNop(), MaxUnaryRetries: 1,
		TLS:         &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, ServerName: "cp-1"},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return dial() })},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
