// Package substitution replaces the variables of templates by their values.
//
// Does: the syntax of envsubst, as templates of Cluster API providers have it: ${VAR}, also with spaces in the braces;
// defaults ${VAR:-x}, ${VAR:=x}, ${VAR=x}; changes of the value (${VAR^^}, ${VAR:0:3}, ${VAR/a/b}, ${VAR%x}
// and so on); $${VAR} for the text ${VAR}. Lists the variables of a template.
//
//	the variable has a value        that one, also where it is empty and there is no default
//	its value is empty, a default   the default
//	no value, a default             the default
//	no value, no default            an Invalid fault that lists all of these
//
// Whether a variable has a default is what its first use in the template says, as clusterctl does it.
//
// Never: puts the value of a variable into an error.
//
// Read first: [Processor], then [Envsubst].
package substitution
