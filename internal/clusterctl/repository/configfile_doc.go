// Package configfile reads the configuration file of clusterctl, with the precedence of environment variables. The file
// is the one named by --config (a path or an https URL), else $XDG_CONFIG_HOME/cluster-api/clusterctl.yaml, else
// ~/.cluster-api/clusterctl.yaml. Without a file, defaults apply. Its keys are:
//
//	providers        a list of name, type and url: more providers, or other repositories of built-in ones
//	cert-manager     url, version, timeout, externallyProvisioned
//	overridesFolder  a folder whose files override the files of repositories
//	images           by "all", component, or component/image: repository, name, tag
//	any other key    a variable
//
// An environment variable takes precedence over a variable of the file; its name is in upper case, with _ for -. A
// mistake in the file is an Invalid fault with its line. The package never writes the file or a copy of a downloaded
// one, and errors never contain the value of a variable.
package repository
