// Command mailer is the program of README.md: one kind, whose handler prints whom it welcomes. A test runs it as README.md says.
package main
