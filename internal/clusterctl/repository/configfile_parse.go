package repository

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drone/envsubst/v2"
	"go.yaml.in/yaml/v3"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// parser parses clusterctl's configuration file. The keys are clusterctl's.
type parser struct {
	file     *ConfigFile
	problems []string
}

// parseConfig parses a file, which is called path in messages. [LoadConfig] calls it. It reports all mistakes at once.
func parseConfig(data []byte, path string, e ConfigEnvironment) (*ConfigFile, error) {
	f := &ConfigFile{Path: path, environment: e, variables: map[string]string{}, Images: map[string]ImageOverride{},
		CertManager: CertManager{Version: defaultCertManagerVersion, Timeout: defaultCertManagerTimeout}}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fault.New(fault.Invalid, reasonConfig, "the configuration file %s is not valid YAML: %s; correct it", path, withoutValues(err))
	}
	p := &parser{file: f}
	if len(document.Content) > 0 && document.Content[0].Tag != "!!null" {
		p.root(document.Content[0])
	}
	p.defaults()
	if len(p.problems) > 0 {
		return nil, fault.New(fault.Invalid, reasonConfig, "the configuration file %s is invalid:\n  %s", path, strings.Join(p.problems, "\n  "))
	}
	return f, nil
}

var lineOfError = regexp.MustCompile(`line (\d+)`)

// withoutValues returns the line number of a YAML parser error, without the quoted text, which may be a password.
func withoutValues(err error) string {
	if m := lineOfError.FindString(err.Error()); m != "" {
		return m + " cannot be parsed"
	}
	return "it cannot be parsed"
}

func (p *parser) problem(n *yaml.Node, message string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf("line %d: ", n.Line)+fmt.Sprintf(message, args...))
}

// pairs calls do for every key of a mapping.
func (p *parser) pairs(n *yaml.Node, what string, do func(key string, at, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.problem(n, "%s is not a mapping of keys to values", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if seen[key.Value] {
			p.problem(key, "%s is set twice", key.Value)
		}
		seen[key.Value] = true
		do(key.Value, key, resolved(value))
	}
}

// resolved returns the node that an alias refers to.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// text returns the value of a scalar as written in the file.
func (p *parser) text(key string, n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode:
		p.problem(n, "%s is not a string; set a single value", key)
		return ""
	case n.Tag == "!!null":
		return ""
	}
	return n.Value
}

func (p *parser) root(n *yaml.Node) {
	p.pairs(n, "the file", func(key string, at, value *yaml.Node) {
		empty := value.Tag == "!!null"
		switch strings.ToLower(key) {
		case "providers":
			if !empty {
				p.providers(value)
			}
		case "cert-manager":
			if !empty {
				p.certManager(value)
			}
		case "images":
			if !empty {
				p.images(value)
			}
		case "overridesfolder":
			p.file.overrides = p.text(key, value)
		default:
			p.variable(key, at, value)
		}
	})
}

func (p *parser) variable(key string, at, value *yaml.Node) {
	if value.Kind != yaml.ScalarNode {
		p.problem(at, "%s is neither a variable with a string as its value nor one of: providers, cert-manager, overridesFolder, images", key)
		return
	}
	name := environmentName(key)
	if _, ok := p.file.variables[name]; ok {
		p.problem(at, "%s is set twice, in upper case and in lower case", key)
	}
	p.file.variables[name] = p.text(key, value)
}

func (p *parser) providers(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.problem(n, "providers is not a list; start each provider with - name:")
		return
	}
	for _, one := range n.Content {
		one = resolved(one)
		var out provider.Provider
		ok := true
		p.pairs(one, "a provider", func(key string, at, value *yaml.Node) {
			text := p.text(key, value)
			switch strings.ToLower(key) {
			case "name":
				out.Name = text
			case "type":
				out.Type = provider.Type(text)
			case "url":
				out.URL, ok = p.substituted(value, "the url", text)
			default:
				p.problem(at, "a provider has the fields name, type and url, not %s", key)
			}
		})
		if !ok {
			continue
		}
		if err := out.Validate(); err != nil {
			p.problem(one, "%s", fault.UserMessage(err))
		} else if slices.ContainsFunc(p.file.providers, func(q provider.Provider) bool { return provider.Compare(out, q) == 0 }) {
			p.problem(one, "provider %s is listed twice", out.Label())
		} else {
			p.file.providers = append(p.file.providers, out)
		}
	}
}

// substituted replaces environment variables in a text.
func (p *parser) substituted(n *yaml.Node, what, text string) (string, bool) {
	out, err := envsubst.Eval(text, p.file.environment.get)
	if err != nil {
		p.problem(n, "%s contains an invalid variable; write it as ${NAME}", what)
	}
	return out, err == nil
}

func (p *parser) certManager(n *yaml.Node) {
	to := &p.file.CertManager
	p.pairs(n, "cert-manager", func(key string, at, value *yaml.Node) {
		text := p.text(key, value)
		if text == "" {
			return
		}
		var err error
		switch strings.ToLower(key) {
		case "url":
			to.URL, _ = p.substituted(value, "the url of cert-manager", text)
		case "version":
			to.Version = text
		case "timeout":
			if to.Timeout, err = time.ParseDuration(text); err != nil || to.Timeout <= 0 {
				p.problem(value, "the timeout of cert-manager is %q; write a duration, for example 10m", text)
			}
		case "externallyprovisioned":
			if to.ExternallyProvisioned, err = strconv.ParseBool(text); err != nil {
				p.problem(value, "externallyProvisioned is %q; write true or false", text)
			}
		default:
			p.problem(at, "cert-manager has the fields url, version, timeout and externallyProvisioned, not %s", key)
		}
	})
}

func (p *parser) images(n *yaml.Node) {
	p.pairs(n, "images", func(component string, _, of *yaml.Node) {
		var image ImageOverride
		p.pairs(of, "images."+component, func(key string, at, value *yaml.Node) {
			text := p.text(key, value)
			switch strings.ToLower(key) {
			case "repository":
				image.Repository = text
			case "name":
				image.Name = text
			case "tag":
				image.Tag = text
			default:
				p.problem(at, "an image has the fields repository, name and tag, not %s", key)
			}
		})
		p.file.Images[component] = image
	})
}

// defaults sets the defaults that depend on values from the file.
func (p *parser) defaults() {
	f := p.file
	if f.CertManager.URL == "" {
		f.CertManager.URL = "https://github.com/cert-manager/cert-manager/releases/" + f.CertManager.Version + "/cert-manager.yaml"
	}
	if folder, err := envsubst.Eval(f.overrides, f.environment.get); err != nil {
		p.problems = append(p.problems, "overridesFolder contains an invalid variable; write it as ${NAME}")
	} else {
		f.overrides = folder
	}
}
