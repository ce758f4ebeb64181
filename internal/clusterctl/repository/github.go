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
	// githubToken is the variable with a GitHub token.
	githubToken = "GITHUB_TOKEN"
	// maxPages is the maximum number of pages with a hundred releases each.
	maxPages = 20
)

// github implements [Repository] with the GitHub releases of a project.
type github struct {
	fetcher
	modules        moduleProxy
	owner, project string
	version, file  string
	token          string
}

// newGitHub parses the path /OWNER/PROJECT/releases/VERSION/FILE. open (repository.go) calls it for the host
// github.com.
func newGitHub(p provider.Provider, segments []string, o Options) (Repository, error) {
	if len(segments) != 5 || segments[2] != "releases" {
		return nil, invalidURLError(p, "write it as https://github.com/OWNER/PROJECT/releases/VERSION/FILE; VERSION may be latest")
	}
	for _, s := range segments {
		if !isSegment(s) {
			return nil, invalidURLError(p, "%q is not a valid part of a GitHub URL; correct it", s)
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

// Versions lists versions from the Go module proxy, which has no rate limit, if the project is a known Go module.
// Otherwise it uses the GitHub API.
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

// tags returns the tags of the releases listed by the GitHub API.
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

// decode parses a response of the GitHub API.
func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fault.New(fault.Unreachable, reasonUnreachable, "the response of the GitHub API is not valid JSON; run the command again later").From(err)
	}
	return nil
}

var nextLink = regexp.MustCompile(`<([^>]+)>;\s*rel="next"`)

// nextPage returns the URL of the next page, or "" if there is none or if it is not a URL of the API.
func nextPage(link string) string {
	m := nextLink.FindStringSubmatch(link)
	if m == nil || !strings.HasPrefix(m[1], githubAPI+"/") {
		return ""
	}
	return m[1]
}

// File downloads an asset. The assets of private projects are available through the API only.
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
