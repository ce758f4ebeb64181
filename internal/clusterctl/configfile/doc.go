// Package configfile is the configuration file of clusterctl, and the environment in front of it.
//
// Does: finds and reads the file; answers what it says of providers, variables, images, overrides and cert-manager. It is,
// in this order: the one of --config (a path, or an address that begins with https), then
// $XDG_CONFIG_HOME/cluster-api/clusterctl.yaml, then ~/.cluster-api/clusterctl.yaml; none of these: everything has its
// default.
//
//	providers        a list of name, type and url: more providers, or other repositories of those that are known
//	cert-manager     url, version, timeout, externallyProvisioned
//	overridesFolder  a folder whose files take the place of those of repositories
//	images           by "all", component, or component/image: repository, name, tag
//	any other key    a variable
//
// A variable of the environment comes before one of the file; its name is in upper case, with _ for -.
//
// Owns: the form of the file. A mistake in it is an Invalid fault with its line.
//
// Never: writes the file, or a copy of one that came from an address; puts the value of a variable into an error.
//
// Read first: [Load], then [File].
package configfile
