package manager

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/env"
)

// command is the command line with which this manager starts again, for a shell.
func (o *options) command(e env.Env) string {
	words := []string{"slipway", "manager"}
	if o.kubeconfig == "" && e.Getenv("KUBECONFIG") != "" {
		words = append([]string{"KUBECONFIG=" + quoted(e.Getenv("KUBECONFIG"))}, words...)
	}
	for _, f := range o.set {
		value := f.Value.String()
		if list, isList := f.Value.(pflag.SliceValue); isList {
			value = strings.Join(list.GetSlice(), ",")
		}
		words = append(words, quoted("--"+f.Name+"="+value))
	}
	return strings.Join(words, " ")
}

// kubeconfigFile is the absolute path of the kubeconfig; empty: there is none, or there are several.
func (o *options) kubeconfigFile(e env.Env) string {
	path := cmp.Or(o.kubeconfig, e.Getenv("KUBECONFIG"))
	if path == "" || o.kubeconfig == "" && len(filepath.SplitList(path)) > 1 {
		return ""
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	return absolute
}

// plain is what a shell takes as it is.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%"

func quoted(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
