// Package repository reads provider releases from the repositories where they are published, and builds the objects to
// install from them, for `slipway init`, `upgrade` and `generate`. A [Source] lists the versions of a provider, selects
// the latest release with a contract, and reads the files of a release; [newComponents] replaces the variables of a
// components file, overrides its images, and moves its objects to one namespace. The configuration file of clusterctl
// ([ConfigFile]) determines the providers, their repositories, the overrides, and the values of variables. The package
// accesses no management cluster and writes no files. Errors never contain a token, the query of a URL, or the value of
// a variable.
//
// The URL of a provider determines the kind of its repository:
//
//	file, absolute path       BASE/LABEL/VERSION/FILE
//	https://github.com        /OWNER/PROJECT/releases/VERSION/FILE: versions from the Go module proxy, or from GitHub's API
//	https, GitLab's API       /api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE
//	https, anything else      …/VERSION/FILE
//	oci                       REGISTRY/REPOSITORY[:VERSION]: each tag is a version, each layer with a title is a file
//
// VERSION may be "latest" if the repository can list versions: files, GitHub and OCI. A file in the overrides folder
// replaces the file of the repository, but does not add a version. Downloads are limited in size and time, and use
// https only (http only from this machine, and never after a redirect from https). Credentials are not sent to another
// host after a redirect. The version is selected as follows; releases take precedence over pre-releases, and a tag
// without metadata.yaml is not a release:
//
//	the user specifies a version                  this version
//	the URL specifies a version                   this version
//	latest, a series has the requested contract   the latest release of the newest such series
//	latest, a series has a compatible contract    the latest release of the newest such series
//	latest, no series has either                  an error that lists the available contracts
//
// The configuration file is the one named by --config (a path or an https URL), else
// $XDG_CONFIG_HOME/cluster-api/clusterctl.yaml, else ~/.cluster-api/clusterctl.yaml. Without a file, defaults apply. A
// mistake in the file is an Invalid fault with its line. An environment variable takes precedence over a variable of
// the file; its name is in upper case, with _ for -. The keys of the file are:
//
//	providers        a list of name, type and url: more providers, or other repositories of built-in ones
//	cert-manager     url, version, timeout, externallyProvisioned
//	overridesFolder  a folder whose files override the files of repositories
//	images           by "all", component, or component/image: repository, name, tag
//	any other key    a variable
//
// Variables in components and templates have the envsubst syntax of Cluster API provider templates: ${VAR}, also with
// spaces in the braces; defaults ${VAR:-x}, ${VAR:=x}, ${VAR=x}; transformations (${VAR^^}, ${VAR:0:3}, ${VAR/a/b},
// ${VAR%x} and so on); $${VAR} for the literal ${VAR}. The first reference to a variable determines its default, as in
// clusterctl. [Envsubst] replaces a variable as follows:
//
//	the variable has a value            the value, even if it is empty and there is no default
//	the value is empty, with a default  the default
//	no value, with a default            the default
//	no value, no default                an Invalid fault that lists all such variables
//
// The objects of a components file are changed in this order. It is an error if the target namespace is neither
// specified nor in the file:
//
//	variables   replaced
//	images      overridden according to the configuration file
//	Namespace   at most one in the file; its name is the target namespace, unless another one is specified
//	namespaced  objects, subjects of role bindings, services of webhooks and Certificates use the target namespace
//	labels      clusterctl.cluster.x-k8s.io and cluster.x-k8s.io/provider on every object
//	order       Namespace, cert-manager objects, then as in the file; [InstallOrder] is the order for the installation
package repository
