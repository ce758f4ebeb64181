package payload

import (
	"bytes"
	"errors"
	"slices"
	"text/template"
	"text/template/parse"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// MaxContent is how many bytes all files may have together: a Secret holds no more.
const MaxContent = 1 << 20

// Limits of what is no content itself.
const (
	maxTemplate = 256 << 10
	maxPassword = 4 << 10
)

// files resolves content and templates of the user's files.
func (in Input) files() ([]File, error) {
	out := make([]File, 0, len(in.Spec.Files))
	left := MaxContent
	for _, f := range in.Spec.Files {
		content, err := in.content(f)
		if err != nil {
			return nil, err
		}
		if left -= len(content); left < 0 {
			return nil, invalid("spec.files have more than %d KiB of content with file %s: a Secret cannot hold that; let the node fetch large files", MaxContent>>10, f.Path)
		}
		out = append(out, File{
			Path: f.Path, Owner: f.Owner, Permissions: f.Permissions, Encoding: f.Encoding,
			Append: f.Append != nil && *f.Append, Content: content,
		})
	}
	return out, nil
}

func (in Input) content(f bootstrapv1.File) ([]byte, error) {
	content := []byte(f.Content)
	if f.ContentFrom.IsDefined() {
		from := f.ContentFrom.Secret
		if why := in.Denied[from.Name]; why != "" {
			return nil, invalid("file %s: %s", f.Path, why)
		}
		var err error
		if content, err = in.Secrets.value("file "+f.Path, from.Name, from.Key); err != nil {
			return nil, err
		}
	}
	if f.ContentFormat != bootstrapv1.FileContentFormatTemplate {
		return content, nil
	}
	return in.expand(f.Path, content)
}

// expand renders content as a Go template. Without a control plane version, .controlPlane is empty:
// a template can ask for it with "if" or "with", and one that uses .controlPlane.version regardless is an
// error rather than a file with a hole.
func (in Input) expand(path string, content []byte) ([]byte, error) {
	controlPlane := map[string]any{}
	if in.ControlPlaneVersion != "" {
		controlPlane["version"] = in.ControlPlaneVersion
	}
	if len(content) > maxTemplate {
		return nil, invalid("the template of file %s has more than %d KiB; set contentFormat to Raw, or use a shorter one", path, maxTemplate>>10)
	}
	t, err := template.New(path).Option("missingkey=error").Parse(string(content))
	if err != nil {
		return nil, invalid("file %s is not a valid template; correct it or set contentFormat to Raw", path).From(err)
	}
	if t.Tree == nil { // it consists of definitions
		return nil, nil
	}
	if word := refusedWord(t.Root); word != "" {
		return nil, invalid("the template of file %s uses %q, which is not supported: use .controlPlane.version and conditions alone", path, word)
	}
	b := limitedBuffer{left: MaxContent}
	if err := t.Execute(&b, map[string]any{"controlPlane": controlPlane}); err != nil {
		return nil, invalid("the template of file %s cannot be filled in (.controlPlane.version is known only "+
			"where the Cluster has a controlPlaneRef to something with spec.version)", path).From(err)
	}
	return b.Bytes(), nil
}

// refusedWord returns the first word of a template that is not supported, empty if there is none. Without repetition,
// nested templates and functions that make text out of text, the time and the memory that a template takes are those of
// its length; a client that may write a KubeadmConfig may not have more of this process.
func refusedWord(n parse.Node) string {
	switch n := n.(type) {
	case *parse.ListNode:
		return firstRefused(n)
	case *parse.ActionNode:
		return refusedWord(n.Pipe)
	case *parse.IfNode:
		return firstRefused(n.Pipe, n.List, n.ElseList)
	case *parse.WithNode:
		return firstRefused(n.Pipe, n.List, n.ElseList)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			if word := firstRefused(c.Args...); word != "" {
				return word
			}
		}
		return ""
	case *parse.ChainNode:
		return refusedWord(n.Node)
	case *parse.IdentifierNode:
		if !slices.Contains([]string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "index", "slice", "len"}, n.Ident) {
			return n.Ident
		}
		return ""
	case *parse.RangeNode:
		return "range"
	case *parse.TemplateNode:
		return "template"
	}
	return "" // text, fields, variables and constants
}

func firstRefused(nodes ...parse.Node) string {
	for _, n := range nodes {
		if list, ok := n.(*parse.ListNode); ok {
			if list == nil { // there is no else
				continue
			}
			nodes := list.Nodes
			if word := firstRefused(nodes...); word != "" {
				return word
			}
			continue
		}
		if word := refusedWord(n); word != "" {
			return word
		}
	}
	return ""
}

// limitedBuffer is a buffer that takes no more than is left.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("the content is too long")
	}
	return b.Buffer.Write(p)
}

// users fills in passwords that come from Secrets.
func (in Input) users() ([]bootstrapv1.User, error) {
	out := make([]bootstrapv1.User, 0, len(in.Spec.Users))
	for _, u := range in.Spec.Users {
		if u.PasswdFrom.IsDefined() {
			from := u.PasswdFrom.Secret
			if why := in.Denied[from.Name]; why != "" {
				return nil, invalid("the password of user %s: %s", u.Name, why)
			}
			passwd, err := in.Secrets.value("the password of user "+u.Name, from.Name, from.Key)
			if err != nil {
				return nil, err
			}
			if len(passwd) > maxPassword {
				return nil, invalid("the password of user %s in Secret %s has more than %d KiB; replace it", u.Name, from.Name, maxPassword>>10)
			}
			u.Passwd, u.PasswdFrom = string(passwd), bootstrapv1.PasswdSource{}
		}
		out = append(out, u)
	}
	return out, nil
}
