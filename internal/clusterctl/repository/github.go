package repository

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	githubHost = "github.com"
	githubAPI  = "https://api.github.com"
	// githubToken is the variable with a token for GitHub.
	githubToken = "GITHUB_TOKEN"
	// maxPages of releases with a hundred each are read.
	maxPages = 20
)

// github is the releases of a project on GitHub.
type github struct {
	fetcher
	modules        moduleProxy
	owner, project string
	version, file  string
	token          string
}

// newGitHub takes the path /OWNER/PROJECT/releases/VERSION/FILE.
func newGitHub(p provider.Provider, segments []string, o Options) (Repository, error) {
	if len(segments) != 5 || segments[2] != "releases" {
		return nil, malformed(p, "write it as https://github.com/OWNER/PROJECT/releases/VERSION/FILE, VERSION may be latest")
	}
	for _, s := range segments {
		if !isSegment(s) {
			return nil, malformed(p, "%q is no part of an address on GitHub; correct it", s)
		}
	}
	f := o.fetcher()
	return github{
		fetcher: f, modules: moduleProxy{f, o.variable("GOPROXY")}, token: o.variable(githubToken),
		owner: segments[0], project: segments[1], version: segments[3], file: segments[4],
	}, nil
}

func (g github) DefaultVersion() string { return g.version }

func (g github) ComponentsFile() string { return g.file }

// Versions come from the Go module proxy, which has no limit of requests, where the project is a Go module that it knows.
func (g github) Versions(ctx context.Context) ([]string, error) {
	versions, err := g.modules.versions(ctx, githubHost+"/"+g.owner+"/"+g.project)
	if len(versions) > 0 {
		return versions, nil
	}
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return g.tags(ctx)
}

// tags are those of the releases that GitHub's API lists.
func (g github) tags(ctx context.Context) ([]string, error) {
	var out []string
	next := githubAPI + "/repos/" + g.owner + "/" + g.project + "/releases?per_page=100"
	for range maxPages {
		resp, err := g.get(ctx, g.request(next, "application/vnd.github+json"))
		if err != nil {
			return nil, err
		}
		var page []struct {
			TagName string `json:"tag_name"`
			Draft   bool   `json:"draft"`
		}
		if err := decode(resp.body, &page); err != nil {
			return nil, err
		}
		for _, r := range page {
			if !r.Draft {
				out = append(out, r.TagName)
			}
		}
		if next = nextPage(resp.header.Get("Link")); next == "" {
			break
		}
	}
	return out, nil
}

func (g github) request(address, accept string) request {
	return request{url: address, accept: accept, token: g.token, credentials: githubToken}
}

// decode reads an answer of GitHub's API.
func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fault.New(fault.Unreachable, ReasonUnreachable, "GitHub's API answers with something that is no JSON; run the command again later").From(err)
	}
	return nil
}

var nextLink = regexp.MustCompile(`<([^>]+)>;\s*rel="next"`)

// nextPage is the address of the next page; one that leads away from the API is none.
func nextPage(link string) string {
	m := nextLink.FindStringSubmatch(link)
	if m == nil || !strings.HasPrefix(m[1], githubAPI+"/") {
		return ""
	}
	return m[1]
}

// File downloads an asset. Projects that need a token show their assets through the API alone.
func (g github) File(ctx context.Context, version, name string) ([]byte, error) {
	project := g.owner + "/" + g.project
	resp, err := g.get(ctx, request{url: "https://" + githubHost + "/" + project + "/releases/download/" + url.PathEscape(version) + "/" + url.PathEscape(name)})
	if fault.KindOf(err) == fault.Gone && g.token != "" {
		resp, err = g.asset(ctx, project, version, name)
	}
	if fault.KindOf(err) == fault.Gone {
		return nil, notFound(githubHost+"/"+project, version, name)
	}
	return resp.body, err
}

func (g github) asset(ctx context.Context, project, version, name string) (response, error) {
	release := githubAPI + "/repos/" + project + "/releases/"
	resp, err := g.get(ctx, g.request(release+"tags/"+url.PathEscape(version), "application/vnd.github+json"))
	if err != nil {
		return response{}, err
	}
	var found struct {
		Assets []struct {
			ID   json.Number `json:"id"`
			Name string      `json:"name"`
		} `json:"assets"`
	}
	if err := decode(resp.body, &found); err != nil {
		return response{}, err
	}
	for _, a := range found.Assets {
		if a.Name == name {
			return g.get(ctx, g.request(release+"assets/"+url.PathEscape(a.ID.String()), "application/octet-stream"))
		}
	}
	return response{}, notFound(githubHost+"/"+project, version, name)
}
