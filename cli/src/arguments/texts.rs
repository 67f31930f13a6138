//! The texts below the program's help.

pub const EXAMPLES: &str = "\
Examples:
  waypost login --address https://api.waypost.example --entity my-hotel
  waypost listen --forward http://localhost:3000/hooks --types 'booking.*'
  waypost trigger booking.created
  waypost webhooks
  waypost deliveries --failed
  waypost why B-20417

Exit codes:
  0  done
  1  the service refused or failed, `why` found nothing, or a signed request is not valid; the message says why
  2  the arguments are wrong; nothing was done
  3  the service cannot be reached
  4  not logged in, or the application lacks a credential, a scope, a managing entity or the right to publish
130  stopped by Ctrl-C; `listen` and `deliveries --follow` end with 0

The variables WAYPOST_ADDRESS, WAYPOST_ISSUER, WAYPOST_ENTITY, WAYPOST_CLIENT_ID and WAYPOST_CLIENT_SECRET override the
stored login; --profile ignores them. WAYPOST_PROFILE selects a profile without the option. Results go to standard
output, everything else to standard error. NO_COLOR=1 turns colours off.";
