package repository

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/mod/module"

	"github.com/slipwayhq/slipway/internal/fault"
)

// moduleProxy lists the versions of a Go module from the proxies in GOPROXY, in their order, as the go command does.
// Repositories on GitHub use it as the list of releases, because it has no rate limit.
type moduleProxy struct {
	fetcher
	setting string
}

// defaultProxy is used when GOPROXY is not set.
const defaultProxy = "https://proxy.golang.org"

// maxMajor is the highest major version to list.
const maxMajor = 50

// proxies returns the proxies listed before "direct" or "off", which mean that no proxy is used.
func (m moduleProxy) proxies() []string {
	if m.setting == "" {
		return []string{defaultProxy}
	}
	var out []string
	for _, p := range strings.FieldsFunc(m.setting, func(r rune) bool { return r == ',' || r == '|' }) {
		p = strings.TrimRight(strings.TrimSpace(p), "/")
		if p == "direct" || p == "off" {
			break
		}
		if u, err := url.Parse(p); err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
			out = append(out, p)
		}
	}
	return out
}

// versions returns the versions of all major versions of a module, for a path without a major version suffix. It
// returns none if no proxy knows the module.
func (m moduleProxy) versions(ctx context.Context, path string) ([]string, error) {
	escaped, err := module.EscapePath(path)
	if err != nil {
		return nil, err
	}
	for _, proxy := range m.proxies() {
		var out []string
		if out, err = m.majors(ctx, proxy+"/"+escaped); err == nil && len(out) > 0 {
			return out, nil
		}
	}
	return nil, err
}

// majors returns the versions of consecutive major versions.
func (m moduleProxy) majors(ctx context.Context, base string) ([]string, error) {
	var out []string
	for major := 1; major <= maxMajor; major++ {
		found, err := m.list(ctx, base, major)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
		if len(found) == 0 && major > 1 {
			break
		}
	}
	return out, nil
}

// list returns the versions of one major version.
func (m moduleProxy) list(ctx context.Context, base string, major int) ([]string, error) {
	if major > 1 {
		base += "/v" + strconv.Itoa(major)
	}
	resp, err := m.get(ctx, request{url: base + "/@v/list"})
	if fault.KindOf(err) == fault.Gone {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(resp.body)) {
		fields := strings.Fields(line)
		if len(fields) > 0 && strings.HasPrefix(fields[0], "v") {
			out = append(out, strings.TrimSuffix(fields[0], "+incompatible"))
		}
	}
	return out, nil
}

// NewestModule returns the newest release of a Go module from the proxies in GOPROXY, excluding pre-releases, or "" if
// no proxy knows the module. The version check in package install calls it.
func NewestModule(ctx context.Context, path string, o Options) (string, error) {
	tags, err := moduleProxy{o.fetcher(), o.variable("GOPROXY")}.versions(ctx, path)
	if err != nil {
		return "", err
	}
	for _, r := range semantic(tags) {
		if len(r.version.Pre) == 0 {
			return r.tag, nil
		}
	}
	return "", nil
}
