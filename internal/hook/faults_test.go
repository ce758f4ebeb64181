package hook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/hooktest"
)

const good = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateResponse","status":"Success","retryAfterSeconds":0}`

// RT-10, RT-11, RT-15: every bad answer against a real TLS server, with both failure policies. HOST stands for where the
// extension is.
func TestBadAnswers(t *testing.T) {
	replace := func(old, new string) http.HandlerFunc { return hooktest.Raw(strings.Replace(good, old, new, 1)) }
	tests := map[string]struct {
		serve   http.HandlerFunc
		reason  string
		message string
		counts  bool // against the extension: Ignore passes it over
		brief   bool // the handler's timeout is what ends it
	}{
		"good": {serve: hooktest.Raw(good)},
		"wrong kind": {
			serve: replace("BeforeClusterCreateResponse", "BeforeClusterDeleteResponse"), reason: reasonWrongKind,
			message: "the response is a BeforeClusterDeleteResponse of hooks.runtime.cluster.x-k8s.io/v1alpha1, want BeforeClusterCreateResponse of hooks.runtime.cluster.x-k8s.io/v1alpha1",
		},
		"wrong apiVersion": {
			serve: replace("v1alpha1", "v1beta1"), reason: reasonWrongKind,
			message: "the response is a BeforeClusterCreateResponse of hooks.runtime.cluster.x-k8s.io/v1beta1, want BeforeClusterCreateResponse of hooks.runtime.cluster.x-k8s.io/v1alpha1",
		},
		"no kind and no apiVersion": {serve: hooktest.Raw(`{"status":"Success"}`)}, // RT-28
		"unknown fields":            {serve: replace(`"status"`, `"mood":"sunny","status"`)},
		"a field twice":             {serve: replace(`"status"`, `"message":"a","message":"b","status"`)},
		"a field of another type": {
			serve: replace(`"retryAfterSeconds":0`, `"retryAfterSeconds":"soon"`), reason: reasonNotJSON, counts: true,
			message: "the response is not a BeforeClusterCreateResponse in JSON",
		},
		"another type in another kind": {
			serve: hooktest.Raw(`{"apiVersion":"v1","kind":"Status","status":7}`), reason: reasonWrongKind,
			message: "the response is a Status of v1, want BeforeClusterCreateResponse of hooks.runtime.cluster.x-k8s.io/v1alpha1",
		},
		"21 MiB": {
			serve: hooktest.Raw(`{"message":"` + strings.Repeat("x", 21<<20) + `"}`), reason: reasonTooLarge, counts: true,
			message: "the response of HOST is larger than 20 MiB",
		},
		"a body without end": {serve: hooktest.Flood, reason: reasonTooLarge, counts: true, message: "the response of HOST is larger than 20 MiB"},
		"invalid JSON": {
			serve: hooktest.Raw(good[:50]), reason: reasonNotJSON, counts: true, message: "the response is not a BeforeClusterCreateResponse in JSON",
		},
		"a web page": {
			serve: hooktest.Raw("<html>login</html>"), reason: reasonNotJSON, counts: true, message: "the response is not a BeforeClusterCreateResponse in JSON",
		},
		"nothing":        {serve: hooktest.Raw(""), reason: reasonNotJSON, counts: true, message: "the response is not a BeforeClusterCreateResponse in JSON"},
		"status missing": {serve: replace(`"status":"Success",`, ""), reason: reasonInvalidResponse, message: "the response has no status; want Success or Failure"},
		"status unknown": {serve: replace(`"Success"`, `"Maybe"`), reason: reasonInvalidResponse, message: `the response has status "Maybe"; want Success or Failure`},
		"status Failure": {serve: replace(`"Success"`, `"Failure","message":"no quota"`), reason: reasonFailureResponse, message: "responded with status Failure: no quota"},
		"Failure without a message": {
			serve: replace(`"Success"`, `"Failure"`), reason: reasonFailureResponse, message: "responded with status Failure: no message",
		},
		"negative retryAfterSeconds": {
			serve: replace(`"retryAfterSeconds":0`, `"retryAfterSeconds":-1`), reason: reasonInvalidResponse,
			message: "the response has retryAfterSeconds -1; want 0 or more",
		},
		"slow drip": {serve: hooktest.Drip, reason: reasonTimeout, counts: true, brief: true, message: "HOST did not respond within 1s; make the extension faster, or raise timeoutSeconds of the handler (now 1, at most 30)"},
		"silence":   {serve: hooktest.Silent, reason: reasonTimeout, counts: true, brief: true, message: "HOST did not respond within 1s; make the extension faster, or raise timeoutSeconds of the handler (now 1, at most 30)"},
		"connection reset in the middle": {
			serve: hooktest.Cut(true), reason: reasonLost, counts: true, message: "HOST closed the connection before the response was complete",
		},
		"connection closed in the middle": {
			serve: hooktest.Cut(false), reason: reasonLost, counts: true, message: "HOST closed the connection before the response was complete",
		},
		"redirect": {
			serve: http.RedirectHandler("https://127.0.0.1:1/", http.StatusTemporaryRedirect).ServeHTTP, reason: reasonRedirect, counts: true,
			message: "HOST responded with a redirect (HTTP 307), which is not followed",
		},
		"500": {serve: hooktest.Status(500), reason: reasonHTTPStatus, counts: true, message: "HOST responded with HTTP 500 Internal Server Error"},
		"404": {serve: http.NotFound, reason: reasonHTTPStatus, counts: true, message: "HOST responded with HTTP 404 Not Found"},
		"201": {serve: hooktest.Status(201), reason: reasonHTTPStatus, counts: true, message: "HOST responded with HTTP 201 Created"},
		"204": {serve: hooktest.Status(204), reason: reasonHTTPStatus, counts: true, message: "HOST responded with HTTP 204 No Content"},
		"panic": {
			serve:  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			reason: reasonLost, counts: true, message: "HOST closed the connection before the response was complete",
		},
	}
	const another = ": correct the extension, or spec.clientConfig of ExtensionConfig ext if it refers to another server"
	remedies := map[string]string{
		reasonNotJSON: another, reasonHTTPStatus: another, reasonRedirect: another,
		reasonTooLarge: ": correct the extension", reasonLost: ": correct the extension",
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
			for _, policy := range []hooksv1.FailurePolicy{hooksv1.FailurePolicyFail, hooksv1.FailurePolicyIgnore} {
				h := hooktest.Handler(strings.ToLower(string(policy)), "BeforeClusterCreate")
				h.TimeoutSeconds, h.FailurePolicy = ptr.To(int32(30)), &policy
				if tt.brief {
					h.TimeoutSeconds = ptr.To(int32(1))
				}
				x.Handle(h, tt.serve)
			}
			w.mustDiscover(x.ExtensionConfig("ext"))
			call, _ := creation()
			err := w.Call(t.Context(), cluster("ns"), "fail.ext", call)
			message := strings.ReplaceAll(tt.message, "HOST", x.Listener.Addr().String())
			if tt.reason != "" {
				message = "handler fail.ext: " + message + remedies[tt.reason]
			}
			if reasonOf(err) != tt.reason || err != nil && err.Error() != message {
				t.Errorf("Fail: got %s: %v\nwant %s: %s", reasonOf(err), err, tt.reason, message)
			}
			call, response := creation()
			response.Status = ""
			err = w.Call(t.Context(), cluster("ns"), "ignore.ext", call)
			if passed := err == nil; passed != (tt.counts || tt.reason == "") {
				t.Errorf("Ignore: got %v", err)
			} else if passed && (response.Status != hooksv1.ResponseStatusSuccess || tt.counts && response.Message != "") {
				t.Errorf("Ignore: got %+v", response)
			}
		})
	}
}

// RT-06, RT-15: every way not to reach an extension. The problem is what the ExtensionConfig's condition says.
func TestUnreachable(t *testing.T) {
	other := hooktest.NewAuthority(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		options hooktest.Options
		change  func(*runtimev1.ExtensionConfig)
		reason  string
		message string
	}{
		"good": {},
		"certificate expired": {
			options: hooktest.Options{Certificate: hooktest.Certificate{Expired: true}}, reason: reasonExpired,
			message: "the certificate of HOST has expired or is not valid yet; renew it",
		},
		"certificate for another host": {
			options: hooktest.Options{Certificate: hooktest.Certificate{Name: "elsewhere.example.com"}}, reason: reasonWrongHost,
			message: "the certificate of HOST is for another name; issue one for this name",
		},
		"certificate of a client": {
			options: hooktest.Options{Certificate: hooktest.Certificate{Name: "x", Client: true}}, reason: reasonWrongHost,
			message: "the certificate of HOST is for another name; issue one for this name",
		},
		"another authority": {
			change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.CABundle = other.PEM }, reason: reasonUnknownCA,
			message: "the certificate of HOST is not signed by a CA in spec.clientConfig.caBundle; correct caBundle",
		},
		"the system's authorities": {
			change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.CABundle = nil }, reason: reasonUnknownCA,
			message: "the certificate of HOST is not signed by a CA in spec.clientConfig.caBundle; correct caBundle",
		},
		"caBundle that is none": {
			change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.CABundle = []byte("secret") }, reason: "InvalidCABundle",
			message: "spec.clientConfig.caBundle holds no certificate in PEM form; correct it or let it be injected",
		},
		"TLS 1.1": {
			options: hooktest.Options{TLS: func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }},
			reason:  reasonTLS, message: "HOST does not speak TLS 1.2 or newer",
		},
		"TLS 1.2": {options: hooktest.Options{TLS: func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }}},
		"no TLS": {
			change: func(c *runtimev1.ExtensionConfig) {
				c.Spec.ClientConfig.URL = strings.Replace(plain.URL, "http:", "https:", 1)
			}, reason: reasonTLS, message: plain.Listener.Addr().String() + " does not speak TLS",
		},
		"client certificate wanted": {
			options: hooktest.Options{TLS: func(c *tls.Config) {
				c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, other.Pool()
			}},
			reason:  reasonClientRefused,
			message: "HOST rejects the client certificate; set --runtime-extension-client-cert-file to one that it accepts",
		},
		"nothing listens": {
			change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "https://" + closed.Addr().String() },
			reason: reasonRefused, message: "nothing listens at " + closed.Addr().String(),
		},
		"DNS": { // a name that never exists (RFC 6761)
			change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "https://extension.invalid" },
			reason: reasonHostUnknown, message: "the name extension.invalid cannot be resolved",
		},
		"service, as nobody resolves it here": {
			change: func(c *runtimev1.ExtensionConfig) {
				c.Spec.ClientConfig = runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "ext-system", Name: "my-ext.invalid"}}
			}, reason: reasonHostUnknown, message: "the name my-ext.invalid.ext-system.svc cannot be resolved",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, x := newWorld(t), hooktest.Start(t, tt.options)
			c := x.ExtensionConfig("ext")
			if tt.change != nil {
				tt.change(c)
			}
			for range 2 { // the same each time
				s := w.discover(c)
				message := strings.ReplaceAll(tt.message, "HOST", x.Listener.Addr().String())
				switch {
				case s.Problem == nil && tt.reason != "":
					t.Errorf("no problem, want %s", tt.reason)
				case s.Problem != nil && (s.Problem.Reason != tt.reason || s.Problem.Error() != message):
					t.Errorf("got %s: %v\nwant %s: %s", s.Problem.Reason, s.Problem, tt.reason, message)
				}
			}
		})
	}
}

// RT-05: the authority of an extension is replaced while calls go on.
func TestCAIsReplaced(t *testing.T) {
	w := newWorld(t)
	var current atomic.Pointer[tls.Certificate]
	x := hooktest.Start(t, hooktest.Options{TLS: func(c *tls.Config) {
		current.Store(&c.Certificates[0])
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{*current.Load()}}, nil
		}
	}})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Raw(good))
	c := x.ExtensionConfig("ext")
	w.mustDiscover(c)
	next := hooktest.NewAuthority(t)
	replaced := next.Issue(hooktest.Certificate{})
	current.Store(&replaced)
	x.CloseClientConnections()
	call, _ := creation()
	if err := w.Call(t.Context(), cluster("ns"), "check.ext", call); reasonOf(err) != reasonUnknownCA {
		t.Errorf("with the old caBundle: %v", err)
	}
	c.Spec.ClientConfig.CABundle = next.PEM
	c.Generation++
	w.mustDiscover(c)
	if err := w.Call(t.Context(), cluster("ns"), "check.ext", call); err != nil {
		t.Errorf("with the new caBundle: %v", err)
	}
}

// RT-17: the client certificate is shown, and read again when its files change.
func TestClientCertificate(t *testing.T) {
	clients := hooktest.NewAuthority(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write := func(name string) {
		t.Helper()
		cert, key := clients.IssuePEM(hooktest.Certificate{Name: name, Client: true})
		for file, data := range map[string][]byte{certFile: cert, keyFile: key} {
			if err := os.WriteFile(file+".new", data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := NewCertificates(certFile, keyFile); fault.KindOf(err) != fault.Invalid {
		t.Errorf("files that are not there: %v", err)
	}
	write("first")
	certificates, err := NewCertificates(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *Config) { c.Certificates = certificates })
	x := hooktest.Start(t, hooktest.Options{TLS: func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, clients.Pool()
	}})
	x.Handle(hooktest.Handler("who", "BeforeClusterCreate"), func(rw http.ResponseWriter, r *http.Request) {
		hooktest.Respond(answered(r.TLS.PeerCertificates[0].Subject.CommonName, 0))(rw, r)
	})
	w.mustDiscover(x.ExtensionConfig("ext"))
	seen := func() string {
		t.Helper()
		call, response := creation()
		if err := w.Call(t.Context(), cluster("ns"), "who.ext", call); err != nil {
			t.Fatal(err)
		}
		return response.Message
	}
	if got := seen(); got != "first" {
		t.Errorf("the extension saw %q", got)
	}
	if err := os.WriteFile(keyFile, []byte("half a ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := seen(); got != "first" {
		t.Errorf("in the middle of a change the extension saw %q", got)
	}
	write("second")
	if got := seen(); got != "second" {
		t.Errorf("after the change the extension saw %q", got)
	}
	if n := x.Connections(); n != 2 {
		t.Errorf("%d connections, want one for each certificate", n)
	}
}

// An extension never learns anything of us but what the request says.
func TestNoCredentials(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	var header http.Header
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), func(rw http.ResponseWriter, r *http.Request) {
		header = r.Header
		hooktest.Raw(good)(rw, r)
	})
	w.mustDiscover(x.ExtensionConfig("ext"))
	call, _ := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
		t.Fatal(err)
	}
	for key := range header {
		switch key {
		case "Accept", "Accept-Encoding", "Content-Length", "Content-Type", "User-Agent":
		default:
			t.Errorf("header %s is sent", key)
		}
	}
}

// Settings and answers may hold secrets: errors never repeat them.
func TestSecretsStayOutOfErrors(t *testing.T) {
	const secret = "hunter2"
	for name, serve := range map[string]http.HandlerFunc{
		"not JSON": hooktest.Raw(secret), "500": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusInternalServerError) },
		"cut": hooktest.Cut(true), "no status": hooktest.Raw(strings.Replace(good, `"status":"Success"`, `"message":"`+secret+`"`, 1)),
	} {
		w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
		x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), serve)
		c := x.ExtensionConfig("ext")
		c.Spec.Settings = map[string]string{"password": secret}
		w.mustDiscover(c)
		call, _ := creation()
		_, err := w.CallAll(t.Context(), cluster("ns"), call)
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		f := fault.As(err)
		if text := fmt.Sprint(err, f.Details); strings.Contains(text, secret) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// A caller that gives up says nothing about the extension.
func TestCallerGivesUp(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	asked := make(chan struct{}, 100)
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), func(rw http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		hooktest.Silent(rw, r)
	})
	w.mustDiscover(x.ExtensionConfig("ext"))
	for range 10 {
		ctx, stop := context.WithCancel(t.Context())
		go func() { <-asked; stop() }()
		call, _ := creation()
		if _, err := w.CallAll(ctx, cluster("ns"), call); err == nil || fault.As(err) != nil {
			t.Fatalf("got %v, want the context's error", err)
		}
	}
	if s := w.State("ext"); s.Circuit.Open || len(s.Failing) > 0 {
		t.Error("a circuit is open")
	}
}

// RT-15: a handler that cannot be reached is an error that names what to do.
func TestUnreachableHandlerHasRemedy(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), nil)
	w.mustDiscover(x.ExtensionConfig("ext"))
	x.Close()
	var err error
	for range 3 { // the first may still find the connection of the discovery
		call, _ := creation()
		if err = w.Call(t.Context(), cluster("ns"), "check.ext", call); reasonOf(err) == reasonRefused {
			break
		}
	}
	want := "handler check.ext: nothing listens at " + x.Listener.Addr().String() + ": start the extension, or correct spec.clientConfig of ExtensionConfig ext"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
