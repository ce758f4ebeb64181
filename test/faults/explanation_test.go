package faults

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/plan"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

// explanation is the root cause that a command or a page shows.
type explanation struct {
	object, cause, remedy string
	// age is how long the cause has lasted, in the notation of Kubernetes. It is empty if it is not shown.
	age string
	// text is everything that is shown.
	text string
}

// key returns what two explanations of the same state have in common.
func (e explanation) key() string { return e.object + "\n" + e.cause + "\n" + e.remedy + "\n" }

// score is the verdict on an explanation.
type score struct{ object, cause, since, remedy bool }

func (s score) isComplete() bool { return s == score{true, true, true, true} }

// judge compares an explanation with what a row wants. The cause is not older than the injection.
func judge(e explanation, r row, injecting time.Duration) score {
	s := score{
		object: slices.ContainsFunc(strings.Split(r.object, "|"), func(o string) bool { return strings.HasPrefix(e.object, o) }), cause: strings.Contains(e.cause, r.cause), remedy: strings.Contains(e.remedy, r.remedy),
	}
	age, err := parseAge(e.age)
	s.since = err == nil && age <= injecting+2*time.Second
	return s
}

var ageForm = regexp.MustCompile(`(\d+)([smhd])`)

// parseAge parses an age such as 2m5s.
func parseAge(text string) (total time.Duration, err error) {
	parts := ageForm.FindAllStringSubmatch(text, -1)
	if len(parts) == 0 {
		return 0, fmt.Errorf("%q is not an age", text)
	}
	for _, p := range parts {
		var n int
		if _, err := fmt.Sscan(p[1], &n); err != nil {
			return 0, err
		}
		total += time.Duration(n) * map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[p[2]]
	}
	return total, nil
}

// headForm matches the line of a link of a chain.
var headForm = regexp.MustCompile("^ +(?:`-)?([A-Z][A-Za-z]+ [a-z0-9./-]+)(?:, since ([0-9smhd]+))?$")

// parseText returns the root cause in the output of `slipway explain KIND/NAME`.
func parseText(text string) explanation {
	e := explanation{text: text}
	inRemedy := false
	for i, line := range strings.Split(text, "\n") {
		head := headForm.FindStringSubmatch(line)
		switch {
		case line == "What to do" || line == "What happens next":
			inRemedy = true
		case inRemedy && line == "":
			return e
		case inRemedy:
			e.remedy = join(e.remedy, line)
		case i > 0 && head != nil:
			e.object, e.age, e.cause = head[1], head[2], ""
		case i > 0:
			e.cause = join(e.cause, strings.TrimPrefix(strings.TrimSpace(line), "|"))
		}
	}
	return e
}

// errorForm matches the error for a management cluster that does not run.
var errorForm = regexp.MustCompile(`(?s)^(Management cluster \S+), since ([0-9smhd]+): (.*?)\. (.*)$`)

// parseError returns the root cause in an error of `slipway explain`.
func parseError(text string) explanation {
	e := explanation{text: text}
	if m := errorForm.FindStringSubmatch(text); m != nil {
		e.object, e.age, e.cause, e.remedy = m[1], m[2], m[3], m[4]
	}
	return e
}

func join(a, b string) string { return strings.Join(strings.Fields(a+" "+b), " ") }

var (
	rootForm   = regexp.MustCompile(`(?s)<li class="root">(.*?)</li>`)
	headHTML   = regexp.MustCompile(`(?s)<p class="head">(.*?)</p>`)
	remedyForm = regexp.MustCompile(`(?s)<div class="remedy [a-z]+">(.*?)</div>`)
	timeForm   = regexp.MustCompile(`<time[^>]*>([0-9smhd]+)</time>`)
	tagForm    = regexp.MustCompile(`(?s)<[^>]*>`)
)

// parsePage returns the root cause of the first chain of a page.
func parsePage(body string) explanation {
	e := explanation{text: shorten(body)}
	root := rootForm.FindStringSubmatch(body)
	if root == nil {
		return e
	}
	head := headHTML.FindString(root[1])
	e.object, e.cause, e.remedy = plainText(head), plainText(strings.Replace(root[1], head, "", 1)), plainText(remedyForm.FindString(body))
	if age := timeForm.FindStringSubmatch(head); age != nil {
		e.age = age[1]
	}
	e.text = e.object + "\n" + e.cause + "\n" + e.remedy
	return e
}

func plainText(markup string) string {
	return join(html.UnescapeString(tagForm.ReplaceAllString(markup, " ")), "")
}

func shorten(body string) string {
	text := plainText(body)
	return text[:min(len(text), 1500)]
}

// explain runs `slipway explain` in a namespace, with the plans of the manager or without.
func (n *namespace) explain(what string, withPlans bool) explanation {
	n.turns <- struct{}{}
	defer func() { <-n.turns }()
	var out bytes.Buffer
	e := term.Env{Out: &out, Err: &out, Now: time.Now, Getenv: func(name string) string { return map[string]string{"HOME": n.elsewhere}[name] }}
	cmd := plan.ExplainCommand(e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	args := []string{what, "--namespace", n.name, "--data-dir", n.dir}
	if !withPlans {
		args = []string{what, "--namespace", n.name, "--data-dir", n.elsewhere, "--kubeconfig", n.kubeconfig()}
	}
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(n.Context()); err != nil {
		return parseError(fault.UserMessage(err))
	}
	return parseText(out.String())
}

// page is the page of `slipway ui`.
type page struct {
	browser *http.Client
	base    string
}

// startPage serves the page until the test ends, and opens its first address.
func startPage(t *testing.T, dir string) page {
	t.Helper()
	read, write := io.Pipe()
	cmd := plan.UICommand(term.Env{Out: write, Err: io.Discard, Getenv: os.Getenv, Now: time.Now})
	cmd.SetArgs([]string{"--data-dir", dir})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		_ = write.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the page ended: %v", err)
		}
	})
	address, err := bufio.NewReader(read).ReadString('\n')
	must(t, err)
	jar, err := cookiejar.New(nil)
	must(t, err)
	p := page{browser: &http.Client{Jar: jar, Timeout: time.Minute}}
	response, err := p.browser.Get(strings.TrimSpace(address))
	must(t, err)
	_ = response.Body.Close()
	p.base = response.Request.URL.String() // of the only management cluster, after the redirects
	return p
}

// show reads the page of an object: of a Cluster, the page of the cluster.
func (n *namespace) show(what string) explanation {
	kind, name, _ := strings.Cut(what, "/")
	group, _, _ := strings.Cut(apiVersions()[kind], "/")
	namespace := n.name
	if kind == "ExtensionConfig" {
		namespace = "-"
	}
	path := "object/" + group + "/" + kind + "/" + namespace + "/" + name
	if kind == "Cluster" {
		path = "cluster/" + namespace + "/" + name
	}
	address, err := url.JoinPath(n.page.base, path)
	n.must(err)
	response, err := n.page.browser.Get(address)
	if err != nil {
		return explanation{text: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return explanation{text: err.Error()}
	}
	return parsePage(string(body))
}
