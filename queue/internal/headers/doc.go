// Package headers writes a message's headers for a table, and reads them: any bytes pass, and text stays legible to a person who looks into
// the table. The form is on disk in the embedded queue and in the outbox: it may not change.
package headers
