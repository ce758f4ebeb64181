package ui

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testGuard(t *testing.T) *Guard {
	t.Helper()
	g, err := NewGuard(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:7180")))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// browserRequest returns a request of a browser with a session; change alters it.
func browserRequest(g *Guard, target string, change func(*http.Request)) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "127.0.0.1:7180"
	r.AddCookie(&http.Cookie{Name: g.cookie, Value: g.session})
	if change != nil {
		change(r)
	}
	return r
}

func TestGuard(t *testing.T) {
	g := testGuard(t)
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for name, tc := range map[string]struct {
		reason, target string
		change         func(*http.Request)
		code           int
	}{
		"session":           {"a browser with the cookie", "/", nil, 200},
		"head":              {"HEAD reads as well", "/", func(r *http.Request) { r.Method = http.MethodHead }, 200},
		"localhost":         {"the same listener by name", "/", host("LOCALHOST:7180"), 200},
		"post":              {"the page changes nothing", "/", func(r *http.Request) { r.Method = http.MethodPost }, 405},
		"options":           {"no preflight is needed", "/", func(r *http.Request) { r.Method = http.MethodOptions }, 405},
		"rebinding":         {"a name that resolves to loopback", "/", host("evil.example.com:7180"), 421},
		"other port":        {"a cookie is sent to every port", "/", host("127.0.0.1:80"), 421},
		"no port":           {"the port is part of the name", "/", host("127.0.0.1"), 421},
		"other loopback":    {"only the listener's address", "/", host("127.0.0.2:7180"), 421},
		"own origin":        {"the script of the page", "/", header("Origin", "http://127.0.0.1:7180", "Sec-Fetch-Site", "same-origin"), 200},
		"other origin":      {"a script of another site", "/", header("Origin", "http://evil.example.com"), 403},
		"null origin":       {"a sandboxed frame", "/", header("Origin", "null"), 403},
		"https origin":      {"another scheme is another site", "/", header("Origin", "https://127.0.0.1:7180"), 403},
		"cross-site":        {"an image on another site", "/", header("Sec-Fetch-Site", "cross-site"), 403},
		"same-site":         {"another port of this host", "/", header("Sec-Fetch-Site", "same-site"), 403},
		"address bar":       {"a bookmark", "/", header("Sec-Fetch-Site", "none"), 200},
		"no cookie":         {"another program of this host", "/", func(r *http.Request) { r.Header.Del("Cookie") }, 401},
		"wrong cookie":      {"the token is not the session", "/", header("Cookie", g.cookie+"="+g.token), 401},
		"two cookies":       {"another port has set one, too", "/", header("Cookie", g.cookie+"=x; "+g.cookie+"="+g.session), 200},
		"asset, no cookie":  {"assets are protected as well", "/assets/app.css", func(r *http.Request) { r.Header.Del("Cookie") }, 401},
		"token":             {"the first address", "/?token=" + g.token, func(r *http.Request) { r.Header.Del("Cookie") }, 303},
		"wrong token":       {"a guess, even with a session", "/?token=00", nil, 401},
		"token of a chat":   {"a link on another site", "/?token=" + g.token, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), 200},
		"token of an image": {"a site that knows the token may not embed", "/?token=" + g.token, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), 403},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })).ServeHTTP(w, browserRequest(g, tc.target, tc.change))
			if w.Code != tc.code {
				t.Errorf("%s: got %d, want %d: %s", tc.reason, w.Code, tc.code, w.Body)
			}
			for _, h := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Cache-Control"} {
				if w.Header().Get(h) == "" {
					t.Errorf("the response has no %s", h)
				}
			}
		})
	}
}

// Browsers omit the port 80 from Host and Origin.
func TestGuardOnDefaultPort(t *testing.T) {
	for address, hosts := range map[string]map[string]int{
		"127.0.0.1:80":   {"127.0.0.1": 200, "127.0.0.1:80": 200, "localhost": 200, "127.0.0.2": 421, "example.com": 421},
		"[::1]:80":       {"[::1]": 200, "[::1]:80": 200, "localhost": 200, "::1": 421},
		"127.0.0.1:7180": {"127.0.0.1": 421, "localhost": 421},
	} {
		g, err := NewGuard(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)))
		if err != nil {
			t.Fatal(err)
		}
		for host, code := range hosts {
			w := httptest.NewRecorder()
			g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })).ServeHTTP(w, browserRequest(g, "/", func(r *http.Request) {
				r.Host = host
				r.Header.Set("Origin", "http://"+host)
			}))
			if w.Code != code {
				t.Errorf("%s, host %s: got %d, want %d", address, host, w.Code, code)
			}
		}
	}
}

func TestLogin(t *testing.T) {
	g := testGuard(t)
	for name, tc := range map[string]struct {
		site     string
		redirect bool
	}{
		"terminal":     {"", true},
		"address bar":  {"none", true},
		"another site": {"cross-site", false},
	} {
		w := httptest.NewRecorder()
		g.Protect(http.NotFoundHandler()).ServeHTTP(w, browserRequest(g, strings.TrimPrefix(g.URL(), "http://127.0.0.1:7180"), func(r *http.Request) {
			r.Header.Del("Cookie")
			r.Header.Set("Sec-Fetch-Site", tc.site)
			r.Header.Set("Sec-Fetch-Mode", "navigate")
		}))
		if got := w.Header().Get("Location"); (got == "/") != tc.redirect {
			t.Errorf("%s: Location is %q", name, got)
		}
		if body := w.Body.String(); !tc.redirect && !strings.Contains(body, `content="0;url=/"`) || strings.Contains(body, g.token) {
			t.Errorf("%s: body is %q", name, body)
		}
		cookies := w.Result().Cookies()
		if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Value != g.session {
			t.Errorf("%s: cookies are %v", name, cookies)
		}
	}
	if g.session == g.token || len(g.token) < 32 {
		t.Errorf("token %q and session %q", g.token, g.session)
	}
}

func TestPolicy(t *testing.T) {
	h := http.Header{}
	setSecurityHeaders(h)
	policy := h.Get("Content-Security-Policy")
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %q", policy)
	}
	if diff := cmp.Diff([]string{"nosniff", "no-referrer", "no-store"}, []string{h.Get("X-Content-Type-Options"), h.Get("Referrer-Policy"), h.Get("Cache-Control")}); diff != "" {
		t.Error(diff)
	}
}

func TestListenAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:0": true, "127.0.0.9:80": true, "[::1]:7180": true, "localhost:7180": true,
		"0.0.0.0:7180": false, ":7180": false, "[::]:7180": false, "10.0.0.1:7180": false, "example.com:1": false, "127.0.0.1": false, "": false,
	} {
		if err := CheckListenAddress(address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	for address, ok := range map[string]bool{"127.0.0.1:7180": true, "[::1]:7180": true, "0.0.0.0:7180": false, "192.168.0.1:7180": false} {
		if _, err := NewGuard(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
