// Command publisher publishes that an invoice was paid, for docs/guide-webhooks.md: a program that runs no worker. Its configuration is that of the
// workers, by the same file and variables.
package main
