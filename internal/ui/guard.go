package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// tokenParameter is the query parameter of the first address.
const tokenParameter = "token"

// Guard decides which requests are accepted. The page can be read by every local process that can guess its address, and
// by every web site that the browser opens, unless both are rejected here. `slipway ui` creates it, and [Server.Serve]
// applies it.
type Guard struct {
	// token starts a session, and session is the value of its cookie. They differ, so that a leaked cookie does not start
	// further sessions.
	token, session string
	hosts          []string
	cookie         string
}

// NewGuard returns the guard for the address of the listener, with a random token. `slipway ui` calls it at its start.
func NewGuard(address net.Addr) (*Guard, error) {
	at, err := netip.ParseAddrPort(address.String())
	if err != nil || !at.Addr().IsLoopback() {
		return nil, fault.New(fault.Invalid, "NotLoopback", "the page is only served on a loopback address, not on %s", address)
	}
	host, port, _ := net.SplitHostPort(address.String())
	hosts := []string{at.String(), "localhost:" + port}
	if port == "80" { // browsers omit the default port
		if at.Addr().Is6() {
			host = "[" + host + "]"
		}
		hosts = append(hosts, host, "localhost")
	}
	return &Guard{token: randomText(), session: randomText(), cookie: "slipway-ui-" + port, hosts: hosts}, nil
}

// CheckListenAddress returns an error unless the host of the address is a loopback address. `slipway ui` checks its
// flag with it.
func CheckListenAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	ip, _ := netip.ParseAddr(host)
	switch {
	case err != nil:
		return fault.New(fault.Invalid, "Usage", "--listen %q is not HOST:PORT, such as 127.0.0.1:7180", address)
	case host != "localhost" && !ip.IsLoopback():
		return fault.New(fault.Invalid, "NotLoopback",
			"--listen %q is not a loopback address: every user of the network could read the page with your permissions; use 127.0.0.1:PORT, and \"ssh -L\" to read it from another host", address)
	}
	return nil
}

// URL returns the first address, which contains the token. `slipway ui` prints it.
func (g *Guard) URL() string { return "http://" + g.hosts[0] + "/?" + tokenParameter + "=" + g.token }

func randomText() string {
	data := make([]byte, 24)
	_, _ = rand.Read(data) // never fails
	return hex.EncodeToString(data)
}

// verdict is the decision about a request. A zero code accepts it.
type verdict struct {
	code  int
	text  string
	login bool
}

// check applies the rules in the order of this table; the first that matches decides.
//
//	method is not GET or HEAD                       405
//	Host is not the listener                        421 (DNS rebinding)
//	Origin is another site                          403
//	Sec-Fetch-Site is another site, no valid token  403
//	token in the query                              login, or 401
//	no session cookie                               401
func (g *Guard) check(r *http.Request) verdict {
	token := r.URL.Query().Get(tokenParameter)
	valid := token != "" && sameText(token, g.token)
	site := r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return verdict{code: http.StatusMethodNotAllowed, text: "The page is read-only: only GET and HEAD are allowed."}
	case !slices.Contains(g.hosts, strings.ToLower(r.Host)):
		return verdict{code: http.StatusMisdirectedRequest, text: "This host name is not an address of the page. Open the address that \"slipway ui\" printed."}
	case !g.isOwnOrigin(r.Header.Values("Origin")):
		return verdict{code: http.StatusForbidden, text: "Requests from other sites are rejected."}
	case !slices.Contains([]string{"", "none", "same-origin"}, site) && !(valid && r.Header.Get("Sec-Fetch-Mode") == "navigate"):
		return verdict{code: http.StatusForbidden, text: "Requests from other sites are rejected. Copy the address into a new tab."}
	case valid:
		return verdict{login: true}
	case token != "", !g.hasSession(r):
		return verdict{code: http.StatusUnauthorized, text: "Open the address that \"slipway ui\" printed. It contains a token that is valid until the command ends."}
	}
	return verdict{}
}

func (g *Guard) isOwnOrigin(origins []string) bool {
	return !slices.ContainsFunc(origins, func(origin string) bool {
		host, ok := strings.CutPrefix(strings.ToLower(origin), "http://")
		return !ok || !slices.Contains(g.hosts, host)
	})
}

// hasSession checks every cookie of the name, because an application on another port of the host can set more.
func (g *Guard) hasSession(r *http.Request) bool {
	found := r.CookiesNamed(g.cookie)
	return slices.ContainsFunc(found[:min(len(found), 16)], func(c *http.Cookie) bool { return sameText(c.Value, g.session) })
}

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Protect sets the security headers of every response and passes accepted requests to the handler. [Server.Serve] puts
// it before all other handlers.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		v := g.check(r)
		switch {
		case v.code == http.StatusMethodNotAllowed:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, v.text, v.code)
		case v.code != 0:
			http.Error(w, v.text, v.code)
		case v.login:
			g.login(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// login sets the session cookie and removes the token from the address. A browser does not send a cookie with
// SameSite=Strict after a redirect that started at another site, so that such a request gets a page that refreshes
// instead.
func (g *Guard) login(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	if site := r.Header.Get("Sec-Fetch-Site"); site == "" || site == "none" || site == "same-origin" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>Slipway</title></head><body><a href="/">Continue</a></body></html>`))
}

func setSecurityHeaders(h http.Header) {
	for _, pair := range [][2]string{
		{"Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
		{"Cache-Control", "no-store"},
	} {
		h.Set(pair[0], pair[1])
	}
}
